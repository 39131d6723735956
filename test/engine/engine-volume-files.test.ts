import type { Readable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createVolumeFiles, type VolumePlace } from '#server/backups/volume-files'
import { newId } from '#server/kernel/ids'
import type { Engine } from '#server/platform/engine/engine'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import { testDocker, testEngine } from '#test/support/engine-images'
import { eventually } from '#test/support/portreeve'
import { testWorkload } from '#test/support/workload'

const project_id = newId('prj')
const network = `ptr-${project_id.replace('prj_', '')}`
const calm = new AbortController().signal
const from = newId('vol')
const to = newId('vol')
let engine: Engine
let instance_id: string

const place = (data_id: string): VolumePlace => ({ data_id, project_id, work_id: newId('job') })
const run = async (...command: string[]) => {
  const { stdin, stdout, done } = await engine.exec(instance_id, { command }, calm)
  stdin.end()
  const [output, { exit_code, stderr }] = await Promise.all([buffer(stdout), done])
  expect([exit_code, stderr]).toEqual([0, ''])
  return output
}
const shell = async (line: string) => String(await run('sh', '-c', line)).trim()
/** Makes folders in one another, each by a name of 200 characters, which no path leads to any more. */
const deep = (folder: string, levels: number) =>
  run(
    ...[
      'perl',
      '-e',
      'chdir shift or die; for (1..shift) { mkdir "d" x 200 or die; chdir "d" x 200 or die }',
    ],
    ...[folder, String(levels)],
  )
/** An archive whose end is told some time after its last byte. */
async function* withLateEnd(bytes: Buffer, told: () => Promise<unknown>) {
  yield bytes
  await told()
}
const once = (bytes: Buffer) => withLateEnd(bytes, async () => {})

beforeAll(async () => {
  engine = testEngine()
  await engine.ensureNetwork(network, { project: project_id })
  for (const id of [from, to]) await engine.ensureVolume(id, { volume: id })
  const idle = testWorkload({
    ...{
      owner: { kind: 'task', id: newId('job') },
      project_id,
      release_id: newId('rel'),
      network,
      user: '0',
    },
    ...{ image: EDGE_IMAGE, command: ['sleep', '600'] },
    mounts: [from, to].map((volume_id) => ({
      ...{ kind: 'volume', volume_id, path: `/${volume_id}`, read_only: false },
    })),
  })
  instance_id = (await engine.ensureRelease(idle, calm))[0]!.id
})
afterAll(async () => {
  await engine?.removeLabelled({ project: project_id })
  for (const id of [from, to]) await engine?.removeVolume(id)
  await engine?.removeNetwork(network)
  await engine?.close()
})

test('folders come back with their times and rights, and so does what is in those that nobody may enter', async () => {
  await shell(`cd /${from} && mkdir -p shut/in && echo a > shut/in/file && ln -s /nowhere shut/away &&
    chmod 711 shut/in && chmod 0 shut && touch -h -d @1000000000 shut/in/file shut/in shut .`)
  const files = createVolumeFiles(engine)
  await files.write(place(to), files.read(place(from), calm), calm)
  const shown = (id: string) => shell(`cd /${id} && find . -printf '%p %m %T@ %l\\n' | sort`)
  expect(await shown(to)).toBe(await shown(from))
  expect(await shown(to)).toContain('./shut 0 1000000000')
})

test('an archive is read to its end, however long after its last byte that comes; what is wrong there is told', async () => {
  const archive = await run('tar', '-C', `/${from}`, '-cf', '-', 'shut')
  await shell(`rm -rf /${to}/*`)
  const files = createVolumeFiles(engine)
  const { work_id, ...rest } = place(to)
  /** Until tar has ended, beside which its container only sleeps. */
  const unpacked = async () => {
    const [own] = await engine.instances({ owner: { kind: 'task', id: work_id } })
    const top = () => testDocker().getContainer(own!.id).top()
    await eventually('The end of tar', async () =>
      JSON.stringify((await top()).Processes).includes('--extract') ? undefined : true,
    )
  }
  await files.write({ ...rest, work_id }, withLateEnd(archive, unpacked), calm)
  expect(await shell(`cat /${to}/shut/in/file`)).toBe('a')
  const broken = async () => {
    await unpacked()
    throw new Error('another checksum')
  }
  const writing = files.write({ ...rest, work_id }, withLateEnd(archive, broken), calm)
  await expect(writing).rejects.toThrow('another checksum')
})

test('a volume with a path that cannot be unpacked again is not backed up, and says which; an archive with one brings back the rest', async () => {
  await shell(`mkdir /${from}/made && echo kept > /${from}/made/kept`)
  await deep(`/${from}/made`, 30)
  const files = createVolumeFiles(engine)
  const reading = text(files.read(place(from), calm) as AsyncIterable<any> as Readable)
  await expect(reading).rejects.toThrow(/a path of more than 4089 bytes.*: made\/ddd/)
  const archive = await run('tar', '-C', `/${from}`, '-cf', '-', './made')
  await shell(`rm -rf /${to}/*`)
  await files.write(place(to), once(archive), calm)
  expect(await shell(`cat /${to}/made/kept; ls /${to}/made | wc -l`)).toBe('kept\n2')
})

import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createGzip, gzipSync } from 'node:zlib'
import { pack, type Header } from 'tar-stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { extractTarGz, type ArchiveLimits } from '#server/platform/archive/extract'

let base: string
let directory: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'portreeve-archive-'))
  directory = join(base, 'out', 'source')
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

type Item = [Partial<Header> & { name: string }, content?: string]
const file = (name: string, content = 'x', mode = 0o644): Item => [{ name, mode }, content]
const folder = (name: string): Item => [{ name, type: 'directory' }]
const link = (name: string, linkname: string): Item => [{ name, type: 'symlink', linkname }]

async function tar(items: Item[]): Promise<Buffer> {
  const writer = pack()
  for (const [header, content] of items) writer.entry(header, content ?? '')
  writer.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of writer) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** One header block with exactly these bytes, checksum included. */
function rawHeader(fields: {
  name: string
  size?: Buffer | string
  type?: string
  linkname?: string
}): Buffer {
  const block = Buffer.alloc(512)
  block.write(fields.name, 0)
  block.write('0000644\0', 100)
  block.write('0000000\0', 108)
  block.write('0000000\0', 116)
  if (Buffer.isBuffer(fields.size)) fields.size.copy(block, 124)
  else block.write(fields.size ?? '00000000000\0', 124)
  block.write('00000000000\0', 136)
  block.write(fields.type ?? '0', 156)
  block.write(fields.linkname ?? '', 157)
  block.write('ustar\u000000', 257)
  block.fill(' ', 148, 156)
  block.write(
    `${block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  )
  return block
}
const pad = (text: string): Buffer =>
  Buffer.concat([Buffer.from(text), Buffer.alloc((512 - (Buffer.byteLength(text) % 512)) % 512)])
const octal = (size: number): string => `${size.toString(8).padStart(11, '0')}\0`
const record = (key: string, value: string): string => {
  const rest = ` ${key}=${value}\n`
  const length = Buffer.byteLength(rest)
  return `${length + String(length + String(length).length).length}${rest}`
}
/** A PAX header whose records apply to the entry after it. */
const paxBefore = (records: Record<string, string>, ...rest: Buffer[]): Buffer => {
  const text = Object.entries(records)
    .map(([key, value]) => record(key, value))
    .join('')
  return Buffer.concat([
    rawHeader({ name: 'PaxHeader', type: 'x', size: octal(Buffer.byteLength(text)) }),
    pad(text),
    ...rest,
    Buffer.alloc(1024),
  ])
}

const stream = (...buffers: Buffer[]) => Readable.from(buffers)
const unpack = async (items: Item[], limits?: Partial<ArchiveLimits>) =>
  extractTarGz(stream(gzipSync(await tar(items))), directory, undefined, limits)
const unpackRaw = (bytes: Buffer, limits?: Partial<ArchiveLimits>) =>
  extractTarGz(stream(gzipSync(bytes)), directory, undefined, limits)

/** Nothing may be left of a refused archive, and nothing may have been written beside its folder. */
async function expectRefused(work: Promise<unknown>, code: string): Promise<void> {
  await expect(work).rejects.toMatchObject({
    name: 'ArchiveError',
    code,
    message: expect.stringMatching(/^The .*\. .*|cancelled\.$/),
  })
  expect(existsSync(directory)).toBe(false)
  expect(
    readdirSync(base).flatMap((name) => (name === 'out' ? readdirSync(join(base, name)) : [name])),
  ).toEqual([])
}

describe('an archive', () => {
  it('becomes a folder: files, empty folders, executables, inner links, long and foreign names', async () => {
    const long = `${'long-folder-name/'.repeat(12)}file.txt`
    const result = await unpack([
      file('package.json', '{}'),
      folder('empty/'),
      file('bin/run', '#!', 0o755),
      file('./src/a.txt', 'a'),
      link('src/b.txt', './a.txt'),
      link('top', 'src/../bin'),
      link('later', 'dist/x'),
      file(long, 'l'),
      file('naïve – 文件', 'u'),
    ])
    expect(result).toEqual({ files: 8, size_bytes: expect.any(Number) })
    expect(readFileSync(join(directory, 'src/b.txt'), 'utf8')).toBe('a')
    expect(readFileSync(join(directory, 'top/run'), 'utf8')).toBe('#!')
    expect(readlinkSync(join(directory, 'later'))).toBe('dist/x')
    expect(readFileSync(join(directory, long), 'utf8')).toBe('l')
    expect(readFileSync(join(directory, 'naïve – 文件'), 'utf8')).toBe('u')
    expect(lstatSync(join(directory, 'empty')).isDirectory()).toBe(true)
    expect([
      statSync(join(directory, 'bin/run')).mode & 0o7777,
      statSync(join(directory, 'src/a.txt')).mode & 0o7777,
      statSync(directory).mode & 0o7777,
      statSync(join(directory, 'src')).mode & 0o7777,
    ]).toEqual([0o755, 0o644, 0o755, 0o755])
  })

  it('loses the one folder that holds everything, as archives of forges have it', async () => {
    expect(
      await unpack(
        [
          [{ name: 'pax_global_header', type: 'pax-global-header' as never, size: 0 }],
          folder('app-1a2b3c/'),
          file('app-1a2b3c/index.js', '1'),
          file('app-1a2b3c/lib/a.js', '2'),
          link('app-1a2b3c/l', 'lib/a.js'),
        ].slice(1) as Item[],
      ),
    ).toMatchObject({ files: 3, stripped: 'app-1a2b3c' })
    expect(readdirSync(directory).sort()).toEqual(['index.js', 'l', 'lib'])
  })

  it('keeps its folders when there is more than one entry at the top', async () => {
    expect(await unpack([file('src/index.js'), file('README.md')])).not.toHaveProperty('stripped')
    expect(readdirSync(directory).sort()).toEqual(['README.md', 'src'])
  })

  it('is read from a path as well, into a folder that may exist already when it is empty', async () => {
    mkdirSync(directory, { recursive: true })
    const path = join(base, 'a.tgz')
    writeFileSync(path, gzipSync(await tar([file('a.txt'), file('b.txt')])))
    await extractTarGz(path, directory)
    expect(readdirSync(directory).sort()).toEqual(['a.txt', 'b.txt'])
  })

  it('leaves out a .git folder, macOS attribute files and set-id bits', async () => {
    await unpack([
      file('.git/config', '[core]\nfsmonitor = touch marker'),
      file('.git/hooks/post-checkout', 'x', 0o755),
      file('._a', 'x'),
      file('a', 'x', 0o6777),
      file('b'),
    ])
    expect(readdirSync(directory).sort()).toEqual(['a', 'b'])
    expect(statSync(join(directory, 'a')).mode & 0o7777).toBe(0o755)
  })

  it('with one of the older formats is read too', async () => {
    const header = rawHeader({ name: 'old.txt', size: octal(1) })
    header.fill(0, 257, 265)
    header.fill(' ', 148, 156)
    header.write(
      `${header
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(6, '0')}\0 `,
      148,
    )
    await unpackRaw(Buffer.concat([header, pad('o'), Buffer.alloc(1024)]))
    expect(readFileSync(join(directory, 'old.txt'), 'utf8')).toBe('o')
  })
})

describe('T14: an archive is refused as unsafe', () => {
  it.each<[string, Item[]]>([
    ['a path upwards', [file('../evil')]],
    ['a path upwards further in', [file('a/b/../../../evil')]],
    ['an absolute path', [file('/tmp/portreeve-evil')]],
    ['a link to an absolute path', [file('a'), link('l', '/etc/passwd')]],
    ['a link upwards', [file('a'), link('l', '../../etc/passwd')]],
    ['a link out of the folder that is left out', [file('app/a'), link('app/l', '../x')]],
    ['a link through a link', [file('a/b/c'), link('d', 'a/b'), link('a/e', '../d/../../../x')]],
    ['links in a circle', [file('a'), link('l', 'm'), link('m', 'l')]],
    ['a file through a link to outside', [link('l', '..'), file('l/evil')]],
    ['a file in place of a link', [link('l', 'a'), file('l', 'x')]],
    ['a link in a folder that is a link', [file('a'), link('l', '..'), link('l/evil', 'x')]],
    ['a hard link', [file('a'), [{ name: 'b', type: 'link', linkname: 'a' }]]],
    ['a hard link to outside', [[{ name: 'b', type: 'link', linkname: '/etc/passwd' }]]],
    ['a character device', [[{ name: 'null', type: 'character-device', devmajor: 1, devminor: 3 }]]],
    ['a block device', [[{ name: 'sda', type: 'block-device', devmajor: 8, devminor: 0 }]]],
    ['a pipe', [[{ name: 'p', type: 'fifo' }]]],
    ['two files of one name', [file('a', '1'), file('b'), file('./a', '2')]],
    ['a file below a file', [file('a'), file('a/b')]],
    ['a folder in place of a file', [file('a'), folder('a/')]],
    ['a name of 256 bytes', [file('n'.repeat(256))]],
  ])('%s', async (_name, items) => {
    await expectRefused(unpack(items), 'unsafe')
    expect(existsSync('/tmp/portreeve-evil')).toBe(false)
  })

  it.each<[string, Buffer]>([
    [
      'a PAX path upwards',
      paxBefore({ path: '../evil' }, rawHeader({ name: 'a', size: octal(1) }), pad('x')),
    ],
    [
      'an absolute PAX path',
      paxBefore({ path: '/tmp/portreeve-evil' }, rawHeader({ name: 'a', size: octal(1) }), pad('x')),
    ],
    [
      'a PAX link path upwards',
      paxBefore({ linkpath: '../../x' }, rawHeader({ name: 'a', type: '2', linkname: 'b' })),
    ],
    ['a path with NUL', paxBefore({ path: 'a\0b' }, rawHeader({ name: 'a', size: octal(1) }), pad('x'))],
    [
      'a sparse file',
      paxBefore(
        { 'GNU.sparse.major': '1', 'GNU.sparse.realsize': '50000000000' },
        rawHeader({ name: 'a', size: octal(1) }),
        pad('x'),
      ),
    ],
    ['an old sparse file', Buffer.concat([rawHeader({ name: 'a', type: 'S' }), Buffer.alloc(1024)])],
    [
      'a file without a name',
      Buffer.concat([rawHeader({ name: './', size: octal(1) }), pad('x'), Buffer.alloc(1024)]),
    ],
  ])('%s', async (_name, bytes) => expectRefused(unpackRaw(bytes), 'unsafe'))
})

describe('an archive is refused as damaged', () => {
  it.each<[string, () => Promise<Buffer>]>([
    ['cut gzip', async () => gzipSync(await tar([file('a', 'x'.repeat(100_000))])).subarray(0, 100)],
    ['cut tar', async () => gzipSync((await tar([file('a', 'x'.repeat(100_000))])).subarray(0, 5000))],
    ['gzip of something else', async () => gzipSync('x'.repeat(5000))],
    [
      'a size below zero',
      async () =>
        gzipSync(
          Buffer.concat([
            rawHeader({ name: 'a', size: Buffer.from([...Array<number>(11).fill(0xff), 0]) }),
            Buffer.alloc(1024),
          ]),
        ),
    ],
    ['a PAX size below zero', async () => gzipSync(paxBefore({ size: '-1' }, rawHeader({ name: 'a' })))],
    [
      'a PAX size that is no number',
      async () => gzipSync(paxBefore({ size: 'x' }, rawHeader({ name: 'a' }))),
    ],
    [
      'a wrong checksum',
      async () => {
        const bytes = await tar([file('a')])
        bytes[0] = 0x62
        return gzipSync(bytes)
      },
    ],
  ])('%s', async (_name, make) => expectRefused(extractTarGz(stream(await make()), directory), 'damaged'))

  it.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['one byte', Buffer.from([0x1f])],
    ['a zip file', Buffer.from('PK\u0003\u0004rest')],
    ['text', Buffer.from('hello world')],
  ])('no gzip at all: %s', async (_name, bytes) =>
    expectRefused(extractTarGz(stream(bytes), directory), 'not_gzip'),
  )
  it('a plain tar file, with the command that makes the right one', async () => {
    const work = extractTarGz(stream(await tar([file('a')])), directory)
    await expect(work).rejects.toThrow(/tar czf/)
    await expectRefused(work, 'not_gzip')
  })
  it('an empty archive', async () => expectRefused(unpack([]), 'empty'))
})

describe('T14: limits hold', () => {
  it('on the unpacked size, before a byte of the file is written', async () => {
    await expectRefused(
      unpackRaw(Buffer.concat([rawHeader({ name: 'a', size: octal(8 * 1024 ** 3 - 1) }), Buffer.alloc(512)])),
      'too_large',
    )
    await expectRefused(
      unpackRaw(paxBefore({ size: '50000000000' }, rawHeader({ name: 'a', size: octal(1) }), pad('x'))),
      'too_large',
    )
    await expectRefused(
      unpack([file('a', 'x'.repeat(600)), file('b', 'x'.repeat(600))], { max_bytes: 1000 }),
      'too_large',
    )
  })

  it('on a gzip bomb without any file in it', async () => {
    async function* zeros() {
      for (let count = 0; count < 64; count += 1) yield Buffer.alloc(1024 ** 2)
    }
    await expectRefused(
      extractTarGz(Readable.from(zeros()).pipe(createGzip()), directory, undefined, {
        max_bytes: 1024 ** 2,
        max_files: 10,
      }),
      'too_large',
    )
  })

  it('on the size of the archive itself', async () =>
    expectRefused(unpack([file('a')], { max_compressed_bytes: 20 }), 'too_large'))

  it('on the number of entries, folders and repeated folders included', async () => {
    await expectRefused(unpack([file('a'), file('b'), file('c')], { max_files: 2 }), 'too_many_files')
    await expectRefused(
      unpack([folder('a/'), folder('a/'), folder('a/')], { max_files: 2 }),
      'too_many_files',
    )
  })

  it('on a million entries, which end at the limit', async () => {
    async function* million() {
      for (let batch = 0; batch < 1000; batch += 1)
        yield Buffer.concat(
          Array.from({ length: 1000 }, (_, index) => rawHeader({ name: `d/${batch}-${index}/`, type: '5' })),
        )
    }
    await expectRefused(
      extractTarGz(Readable.from(million()).pipe(createGzip({ level: 1 })), directory, undefined, {
        max_files: 500,
      }),
      'too_many_files',
    )
  })

  it('on folders that only paths name: a few files may lie in millions of them', async () => {
    const deep = (top: string) => `${top}${'/d'.repeat(50)}`
    await expectRefused(
      unpack([file(`${deep('a')}/f`), file(`${deep('b')}/f`)], { max_files: 90 }),
      'too_many_files',
    )
    await expectRefused(unpack([folder(deep('a')), folder(deep('b'))], { max_files: 90 }), 'too_many_files')
    await unpack([file(`${deep('a')}/f`), file(`${deep('b')}/f`)], { max_files: 104 })
  })

  it('on records that each entry gets a copy of, and on those of one entry', async () => {
    const records = (type: string, count: number) => {
      const text = Array.from({ length: count }, (_, index) => record(`key-${index}`, '')).join('')
      return [rawHeader({ name: 'x', type, size: octal(Buffer.byteLength(text)) }), pad(text)]
    }
    const entry = [rawHeader({ name: 'a', size: octal(1) }), pad('x')]
    const archive = (...parts: Buffer[]) => Buffer.concat([...parts, Buffer.alloc(1024)])
    await expectRefused(unpackRaw(archive(...records('g', 200), ...entry)), 'damaged')
    await expectRefused(unpackRaw(archive(...records('x', 10_000), ...entry)), 'damaged')
    await unpackRaw(archive(...records('g', 40), ...records('x', 2000), ...entry))
  })

  it('on all names together, which are kept in memory', async () => {
    const limits = { max_names_bytes: 25 }
    await expectRefused(unpack([file('a'.repeat(20)), file('b'.repeat(20))], limits), 'unsafe')
    await expectRefused(unpack([file('a'), link('b', 'c'.repeat(30))], limits), 'unsafe')
    await unpack([file('a'.repeat(10)), link('b', 'c'.repeat(10))], limits)
  })

  it('on long names, which cannot fill the memory', async () => {
    const bomb = Buffer.concat([
      rawHeader({ name: 'x', type: 'x', size: octal(64 * 1024 ** 2) }),
      Buffer.alloc(64 * 1024 ** 2),
    ])
    await expectRefused(unpackRaw(bomb), 'damaged')
  })
})

it('an unpacking that would take what the disk keeps for Portreeve is ended and leaves nothing', async () => {
  const source = new Readable({ read() {} })
  source.push(gzipSync(await tar([file('a', 'x'.repeat(1000))])).subarray(0, 60))
  let is_full = false
  const work = extractTarGz(source, directory, undefined, { isDiskFull: () => is_full })
  const refused = expect(work).rejects.toMatchObject({ code: 'DISK_FULL' })
  await expect.poll(() => readdirSync(join(base, 'out'))).toHaveLength(1)
  is_full = true
  await refused
  expect(readdirSync(join(base, 'out'))).toEqual([])
})

it('a cancelled unpacking leaves nothing', async () => {
  const controller = new AbortController()
  const source = new Readable({ read() {} })
  source.push(gzipSync(await tar([file('a', 'x'.repeat(1000))])).subarray(0, 60))
  const work = extractTarGz(source, directory, controller.signal)
  await expect.poll(() => readdirSync(join(base, 'out'))).toHaveLength(1)
  controller.abort()
  await expectRefused(work, 'aborted')
})

import { createFakeEngine } from '#server/platform/engine/fake/fake'
import { engineContract } from '../contract.ts'

engineContract('the fake engine keeps the contract', async () => {
  const engine = createFakeEngine()
  const image = 'busybox:1'
  engine.addImage(image)
  engine.behave(image, {
    start_log: ['ready', { stream: 'stderr', text: 'warned' }],
    exec: ({ command, environment }, input) => {
      if (command[0] === 'cat') return { stdout: input }
      if (command[0] === 'sleep') return { hang: true }
      return { exit_code: 3, stdout: 'out\n', stderr: `${environment?.WHY}\n` }
    },
    run: ({ shell_command }) => ({ hang: shell_command === 'sleep 600' }),
  })
  engine.behave(({ dockerfile }) => dockerfile.includes('exit 7'), { build: 'fail' })
  engine.behave(({ dockerfile }) => dockerfile.includes('sleep'), { build: 'hang' })
  engine.behave(({ dockerfile }) => dockerfile.includes('nosuch'), { build: 'missing_base' })
  return {
    engine,
    image,
    crash: async (id) => engine.crash(id, 3),
    dockerfiles: {
      good: 'FROM busybox:1\nCOPY hello.txt /\nEXPOSE 8080',
      failing: 'FROM busybox:1\nRUN exit 7',
      endless: 'FROM busybox:1\nRUN sleep 600',
      baseless: 'FROM nosuch:1\nRUN true',
    },
  }
})

import { engineContract } from '#test/platform/engine/contract'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testDocker, testEngine } from '#test/support/engine-images'

/** Sends a signal from inside: one sent by the engine would count as a wish to stop. */
async function crash(id: string): Promise<void> {
  const exec = await testDocker()
    .getContainer(id)
    .exec({ Cmd: ['kill', '-USR1', '1'] })
  await exec.start({ Detach: true })
}

for (const builder of ['auto', 'classic'] as const) {
  engineContract(`the Docker engine keeps the contract, builder ${builder}`, async () => {
    await ensureBusyboxImage()
    const base = `FROM ${BUSYBOX_IMAGE}\n`
    return {
      engine: testEngine({ builder }),
      image: BUSYBOX_IMAGE,
      crash,
      dockerfiles: {
        good: `${base}COPY hello.txt /\nRUN cat /hello.txt\nEXPOSE 8080`,
        failing: `${base}RUN exit 7`,
        endless: `${base}RUN echo begin && sleep 600`,
        baseless: 'FROM nosuch:1\nRUN true',
      },
    }
  })
}

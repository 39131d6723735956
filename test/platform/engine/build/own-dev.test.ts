import { expect, it } from 'vitest'
import { withOwnDev } from '#server/platform/engine/build/own-dev'

const DEV = '--mount=type=tmpfs,target=/dev --mount=type=tmpfs,target=/dev/shm'

it.each([
  ['RUN --mount=type=cache,target=/a echo a', `RUN ${DEV} --mount=type=cache,target=/./a echo a`],
  ['RUN --mount=type=cache,id=b,dst=/a/.b true', `RUN ${DEV} --mount=type=cache,id=b,dst=/./a/.b true`],
  ['RUN --mount=type=bind,rw,target=/a true', `RUN ${DEV} --mount=type=bind,rw,target=/./a true`],
  ['RUN --mount=target=/a,readonly=false x', `RUN ${DEV} --mount=target=/./a,readonly=false x`],
  [
    'onbuild  run \\\n  --mount=type=secret,id=c \\\n  --mount=type=cache,target=/a \\\n  a',
    `onbuild  run ${DEV} \\\n  --mount=type=secret,id=c \\\n  --mount=type=cache,target=/./a \\\n  a`,
  ],
])('what the steps of %j write to is mounted before their own devices', (text, held) =>
  expect(withOwnDev(text)).toBe(held),
)

it.each([
  'FROM a\nRUN npm ci',
  'RUN --mount=type=secret,id=a true',
  'RUN --mount=type=bind,target=/src --mount=type=tmpfs,target=/tmp true',
  'COPY --from=b --mount=type=cache,target=/a / /',
  'RUN echo --mount=type=cache,target=/a',
])('%j stays as it is: nothing of it is kept', (text) => expect(withOwnDev(text)).toBe(text))

it.each(['node_modules', '$HOME/.npm', '/a/$NAME', '"/a"'])(
  'a cache at %s, which is not written out, is left out',
  (place) => {
    const cache = `--mount=type=cache,target=${place}`
    expect(withOwnDev(`RUN ${cache} a`)).toBe('RUN  a')
    expect(withOwnDev(`RUN --mount=type=cache,target=/b ${cache} a`)).toBe(
      `RUN ${DEV} --mount=type=cache,target=/./b  a`,
    )
  },
)

import type { Features } from './feature.ts'
import { FEATURES } from './features.ts'

const INTRODUCTION = `# Compose files

An app of the source \`compose\` is described by a file of the [Compose Specification](https://compose-spec.io), in the
repository or inline. It is read as YAML 1.2 with anchors and merge keys: at most 256 KiB, 2,500 lines, 100 aliases and
60 services. Every key is taken, refused or ignored as listed here; a refused or unknown one is a 422 with its path.
A refused key that asks for nothing, such as \`privileged: false\`, is ignored.

## Variables

All forms of interpolation are taken, also nested: \`$NAME\`, \`\${NAME}\`, \`\${NAME-text}\`, \`\${NAME:-text}\`, \`\${NAME?message}\`,
\`\${NAME:?message}\`, \`\${NAME+text}\`, \`\${NAME:+text}\` and \`$$\` for a dollar. Values come from the app's variables and,
below them, from \`.env\` beside the file; never from the server's own environment. What is not set is empty, and
a variable that the file cannot do without (\`?\`) fails the deployment before anything is built.

## Keys

A \`*\` stands for any name or any entry of a list. Keys that begin with \`x-\` are ignored, unless they are listed.

| Key | | |
|---|---|---|
`

/** The text of \`docs/compose.md\`. */
export const renderFeatures = (): string => `${INTRODUCTION}${rows(FEATURES, '').join('\n')}\n`

const rows = (features: Features, path: string): string[] =>
  Object.entries(features).flatMap(([key, { verdict, text, inside, each }]) => [
    `| \`${path}${key}\` | ${verdict} | ${text} |`,
    ...(inside ? rows(inside, `${path}${key}.`) : []),
    ...(each ? rows(each, `${path}${key}.*.`) : []),
  ])

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
a variable that the file cannot do without (\`?\`) fails the deployment before anything is built. So does a value that
cannot stand with nothing in their place, such as \`user: "\${UID}:\${GID}"\`; a plan leaves it open. \`COMPOSE_PROJECT_NAME\` is the
name of the app, unless it is set.

A variable called \`SERVICE_PASSWORD_…\`, \`SERVICE_USER_…\`, \`SERVICE_HEX_…\` or \`SERVICE_BASE64_…\` that is not set is
made up at the first deployment and kept as a variable of the app.

## Files and folders

Nothing of the server is mounted. What stands before the colon of a mount means:

| Source | |
|---|---|
| a name of the top-level \`volumes\` | The volume of that name. |
| nothing (\`/cache\`) | A volume, named after the service and the path. |
| a file of the repository | Its text, copied when the service starts; a file that begins with \`#!\` may be run. |
| a folder of the repository | Its files in the same way: at most 200 files of text and 1 MiB together. |
| a folder of the repository, from which the service is built | Ignored: the image has it. |
| a folder that the repository does not hold, or of which it holds only \`.gitkeep\` | A volume of its own, one for each folder. A path without an ending, or with the ending \`.d\`, is a folder; the plan and the log say which volume it became. |
| a file that the repository does not hold | Refused. Paths with an ending are files, as are \`Caddyfile\`, \`Makefile\` and all that are called so, \`hosts\`, \`passwd\`, \`htpasswd\`, \`pgpass\`, \`crontab\`, \`id_rsa\` and other keys, \`authorized_keys\`, \`known_hosts\`, \`LICENSE\`, \`README\`, \`VERSION\`, and what is mounted at such a path. |
| a path that was such a folder, and at which the repository has files now | The volume of before as long as it exists: what the service wrote goes before what can be had again. The plan and the log say so. |
| \`/etc/localtime\`, \`/etc/timezone\` | Ignored: set the variable \`TZ\`. |
| a variable that is not set | Left out of a plan; a deployment asks for it. |
| any other path of the server, \`docker.sock\`, a path outside of the repository | Refused. |

An \`env_file\` is a file of the repository. The app's variables win over those of \`.env\` beside the compose file here as
well; other files are read as they are. As with Compose, values name other variables (\`URL=http://\${HOST}\`) where no single
quotes are, and a comment begins with a space. One called \`.env\`, \`*.env\` or \`.env.*\` that the repository leaves out gives the service all of
the app's variables in its place, secrets among them, as the file would that people write by hand; the plan and the log say so. Those called
\`SERVICE_PASSWORD_…\` and the like and \`COMPOSE_…\` are for the compose file itself: a service that needs one names it under \`environment\`.
A file with \`required: false\` gives nothing; so a service that must not see the others' secrets names its own under \`environment\`.

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

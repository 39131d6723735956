import { baseImage } from '../base-images.ts'
import { shellWord } from '#server/kernel/shell-word'
import type { SourceTree } from '../plan.ts'
import { compare, filesWithSuffix, folderOf, joinPath, skim } from '../tree-queries.ts'
import { readJson, textAt, xmlText } from '../text-formats.ts'
import { chooseVersion, type VersionRequest } from '../versions.ts'
import { nodeAssets } from './node/assets.ts'
import { TCP, because, nameIn, type Commands, type Stack, type StackContext } from './stack.ts'

const PROJECTS = ['.csproj', '.fsproj', '.vbproj']
const PORT = 8080
const WEB_SDK = /Sdk="Microsoft\.NET\.Sdk\.Web"/

/**
 * What makes ASP.NET, of any version, listen for others on this port, believe the edge and open no door to
 * debuggers.
 */
export const aspnetEnvironment = (port: number) => ({
  ASPNETCORE_HTTP_PORTS: String(port),
  ASPNETCORE_URLS: `http://0.0.0.0:${port}`,
  DOTNET_EnableDiagnostics: '0',
  ASPNETCORE_FORWARDEDHEADERS_ENABLED: 'true',
})

/** .NET: C#, F# and Visual Basic; the web project of a solution. */
export const dotnet: Stack = {
  name: 'dotnet',
  help: 'A .csproj, .fsproj or .sln file.',
  looked_for: ['*.csproj', '*.fsproj', '*.sln'],
  detect: (tree) =>
    filesWithSuffix(tree, [...PROJECTS, '.sln', '.slnx'], 0).length > 0 ||
    (filesWithSuffix(tree, PROJECTS, 2).length > 0 &&
      (tree.has('global.json') || !tree.has('package.json'))) ||
    (tree.has('Program.cs') && !tree.has('package.json')),
  plan: planDotnet,
}

function planDotnet({ tree, version_request }: StackContext) {
  const project = chooseProject(tree)
  const text = `${skim(tree, project)}\n${skim(tree, 'Directory.Build.props')}`
  const targets = xmlText(text, 'TargetFramework') ?? xmlText(text, 'TargetFrameworks')?.split(';').at(-1)
  const sdk = textAt(readJson(tree, 'global.json'), 'sdk', 'version')
  const requests: (VersionRequest | undefined)[] = [
    version_request,
    targets === undefined
      ? undefined
      : {
          wanted: targets.replace(/^netcoreapp|^net(?=\d+\.)/, ''),
          source: project ?? 'Directory.Build.props',
        },
    sdk === undefined ? undefined : { wanted: sdk.replace(/^(\d+\.\d+).*/, '$1'), source: 'global.json' },
  ]
  const version = chooseVersion('dotnet_sdk', requests)
  const wasm = /Sdk="Microsoft\.NET\.Sdk\.BlazorWebAssembly"/.test(text)
  const program = skim(tree, joinPath(folderOf(project ?? ''), 'Program.cs'))
  const blazor = wasm || /AddRazorComponents|AddServerSideBlazor|MapBlazorHub/.test(program)
  const framework = blazor
    ? 'blazor'
    : nameIn(text, { giraffe: /Giraffe/, saturn: /Saturn/, aspnet: WEB_SDK })
  const assembly =
    xmlText(text, 'AssemblyName') ??
    (project ?? 'app')
      .split('/')
      .at(-1)!
      .replace(/\.[a-z]+proj$/, '')
  const target = project === undefined ? '' : ` ${shellWord(project)}`
  const build = `dotnet publish${target} --configuration Release --output /app/publish --no-restore`
  const start = wasm
    ? null
    : `dotnet ${shellWord(`/app/publish/${assembly.replace(/[^A-Za-z0-9_. -]/g, '')}.dll`)}`
  const single = project === undefined
  return {
    stack: 'dotnet',
    framework,
    version: version.version,
    package_manager: 'nuget',
    install_command: single ? null : `dotnet restore${target}`,
    build_command: single ? 'dotnet publish Program.cs --output /app/publish' : build,
    start_command: single ? 'dotnet /app/publish/Program.dll' : start,
    release_command: null,
    port: PORT,
    health_check: wasm ? { type: 'http' as const, path: '/' } : TCP,
    explanation: [
      ...because('stack', 'dotnet', project ?? 'Program.cs'),
      ...because('framework', framework, project ?? ''),
      ...because('version', version.version, version.source),
      ...because('build_command', build, project ?? ''),
      ...because('start_command', start, project ?? ''),
      ...because('port', String(PORT), 'default, set as PORT and ASPNETCORE_HTTP_PORTS'),
    ],
    layout: (commands: Commands) => dotnetLayout(tree, version.version, wasm, commands),
  }
}

/** What a project is, the likeliest to be the app first. */
const KINDS = [WEB_SDK, /BlazorWebAssembly/, /Sdk="Microsoft\.NET\.Sdk\.Worker"|<OutputType>Exe/]

/** The project with a web SDK in the shallowest folder; tests and libraries never. */
function chooseProject(tree: SourceTree): string | undefined {
  const projects = filesWithSuffix(tree, PROJECTS, 4).filter((path) => /^[A-Za-z0-9_ ./+-]+$/.test(path))
  const rank = (path: string) => {
    const text = skim(tree, path)
    const kind = KINDS.findIndex((pattern) => pattern.test(text))
    const sdk = kind < 0 ? 5 : kind
    const aside =
      /tests?\b|Tests?\.|\.Test|AppHost|Benchmark|samples?\//i.test(path) ||
      /Microsoft\.NET\.Test\.Sdk|IsAspireHost/.test(text)
        ? 20
        : 0
    return sdk + aside + path.split('/').length / 10
  }
  return projects.sort((a, b) => rank(a) - rank(b) || compare(a, b))[0]
}

function dotnetLayout(tree: SourceTree, version: string, wasm: boolean, commands: Commands) {
  const manifests = tree
    .files()
    .filter((path) =>
      /\.(?:cs|fs|vb)proj$|\.slnx?$|(?:^|\/)(?:Directory\.(?:Build|Packages)\.(?:props|targets)|[Nn]u[Gg]et\.[Cc]onfig|global\.json|packages\.lock\.json|paket\.(?:lock|dependencies|references))$|^\.config\//.test(
        path,
      ),
    )
  const runs_sdk = /^(?:\S+=\S+\s+)*dotnet\s+(?:run|watch|ef)\b/.test(commands.start ?? '')
  const assets = tree.has('package.json') ? nodeAssets(tree) : undefined
  // Templates with a front end run npm as a part of `dotnet publish`.
  const client = tree.files().some((path) => /(?:^|\/)(?:ClientApp|client-?app)\/package\.json$/i.test(path))
  const node =
    assets ??
    (client
      ? { image: baseImage('node'), setup: [], manifests: [], install: 'true', build: null }
      : undefined)
  return {
    build_image: baseImage('dotnet_sdk', version),
    runtime_image: runs_sdk ? baseImage('dotnet_sdk', version) : baseImage('dotnet_aspnet', version),
    build_env: { DOTNET_CLI_TELEMETRY_OPTOUT: '1', DOTNET_NOLOGO: '1', NUGET_XMLDOC_MODE: 'skip' },
    manifests,
    install: commands.install,
    node_assets: node,
    build: commands.build,
    keep: commands.own_start ? [{ from: '/app/publish', to: '/app/publish' }] : undefined,
    start_directory: commands.own_start ? 'publish' : '',
    runtime_env: aspnetEnvironment(commands.port),
    start: commands.start,
    static_site:
      wasm && commands.own_start ? { from: '/app/publish/wwwroot', fallback: 'spa' as const } : undefined,
    port: commands.port,
  }
}

import type { CheckedLine } from '../../../checks.ts'
import type { NodeApp } from '../manifest.ts'

/** What a framework knows about building and serving its apps. Paths are below the package. */
export interface FrameworkPlan {
  /** `server`: a process of Node answers. `static`: the build leaves files, which nginx serves. */
  kind: 'server' | 'static'
  /** Build line when the package has no build script; null when there is nothing to build. */
  build?: string | null
  /** A whole shell line that builds, in place of a package's program or script. */
  build_line?: string
  /** Debian packages and lines of ours that the build needs before anything of the repository is there. */
  build_packages?: readonly string[]
  build_setup?: readonly string[]
  /**
   * Programs from npm that the start line needs and the project does not bring; installed into the finished
   * image.
   */
  programs?: readonly string[]
  /** The build line is better than the package's script. */
  own_build?: boolean
  /** Start line when the package has no usable start script. */
  start?: string
  /**
   * The start line is better than the package's script, e.g. because the script starts a development server.
   */
  own_start?: boolean
  /** Static: the folder that the build fills. */
  output?: string
  fallback?: 'spa' | 'pages'
  /** Static: the page that a single-page app answers with, where it is not `/index.html`. */
  spa_page?: string
  port?: number
  /** Path that answers once the app is ready; undefined: only the port is probed. */
  ready_path?: string
  build_env?: Readonly<Record<string, string>>
  env?: Readonly<Record<string, string>>
  /** Folder of the build that alone is needed to run, when the framework makes one. */
  bundle?: string
  /** Lines of ours after the build, run in the package's folder. */
  after_build?: readonly (string | CheckedLine)[]
  /** Folders below the package in which its build keeps what it compiled. */
  caches?: readonly string[]
  release?: string
  /** Version of Node for generations of tools that a current one breaks. */
  node?: string
}

/** One framework of the Node world. */
export interface NodeFramework {
  name: string
  detect(app: NodeApp): boolean
  plan(app: NodeApp): FrameworkPlan
}

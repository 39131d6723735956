import { PLATFORM } from '#server/kernel/access'
import type { AppCopy } from './app-copy.ts'
import type { AppPorts } from './app-ports.ts'
import { attempt } from './left-out.ts'

/** What a deployment can ask a repository for. */
const COMMIT = /^[0-9a-f]{7,64}$/

/** Everything of an app that comes back beside its data: configuration, variables, files, names, cron jobs. */
export function createSurroundings(ports: () => AppPorts) {
  /** Inline files as they were; answers whether any differs. */
  function restoreFiles(app_id: string, expected: AppCopy['files']): boolean {
    const { volumes } = ports()
    const present = volumes.releaseMounts(app_id).files
    const same = (a: AppCopy['files'][number], b: AppCopy['files'][number]) =>
      a.path === b.path && a.content === b.content && a.mode === b.mode
    const gone = present.filter((file) => !expected.some((one) => same(one, file)))
    const lacking = expected.filter((file) => !present.some((one) => same(one, file)))
    for (const mount of volumes.mountsOf(app_id))
      if (mount.kind === 'file' && gone.some(({ path }) => path === mount.path))
        volumes.unmount(PLATFORM, app_id, mount.id)
    for (const { path, content, mode } of lacking)
      volumes.mount(PLATFORM, app_id, { path, content, mode: `0${mode.toString(8).padStart(3, '0')}` })
    return gone.length + lacking.length > 0
  }
  /** A deployment brings what the copy says into effect, of its commit where the repository still has that. */
  function deploy(app_id: string, { commit, app: { configuration } }: AppCopy): void {
    const app = ports().apps.find(app_id)
    if (!app || configuration.source === 'upload') return
    const requested =
      COMMIT.test(commit ?? '') && configuration.git_url !== null ? { commit: commit!, or_newest: true } : {}
    ports().deployments.enqueue(app, 'manual', { ...requested, admitted: true }, PLATFORM)
  }
  return {
    restoreFiles,
    deploy,
    /**
     * Configuration, variables and files of an app that has its data back, and the deployment that they need.
     * Nothing is waited for between them, so that no second attempt finds them changed and deploys nothing.
     */
    restoreInPlace(app_id: string, copy: AppCopy): string[] {
      const { apps, env } = ports()
      const left_out: string[] = []
      const changed = [
        attempt('The configuration stays as it is', left_out, () =>
          apps.restoreSnapshot(PLATFORM, app_id, copy.app),
        ),
        Object.entries(env.restore(PLATFORM, app_id, copy.variables)).some(
          ([what, keys]) => what !== 'unchanged' && keys.length > 0,
        ),
        restoreFiles(app_id, copy.files),
      ].includes(true)
      if (changed && apps.find(app_id)?.status !== 'stopped')
        attempt('The app was not deployed', left_out, () => deploy(app_id, copy))
      return left_out
    },
    /**
     * Names and cron jobs; answers what was left out. A copy beside its original runs no job until somebody says
     * so: mails would go out twice.
     */
    restoreNames(app_id: string, source_id: string | null, copy: AppCopy): string[] {
      const { apps, domains, cron } = ports()
      const beside = source_id !== null && source_id !== app_id && apps.find(source_id) !== undefined
      return [
        ...domains.copies.restore(PLATFORM, app_id, copy.domains),
        ...cron.copies.restore(PLATFORM, app_id, copy.cron_jobs, beside),
        ...(beside && copy.cron_jobs.some(({ enabled }) => enabled === true)
          ? ['Cron jobs are paused, since the app that they are of is still there.']
          : []),
      ]
    },
  }
}

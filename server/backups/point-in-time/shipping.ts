import { atMost } from '#server/kernel/at-most'
import type { ContainerCommand } from '#server/databases/engine'
import type { DatabaseInstance } from '#server/databases/instance'
import { Fatal } from '#server/kernel/jobs/definition'
import { EngineError } from '#server/platform/engine/engine'
import { classify } from '../classify.ts'
import { type LogContext, tellOf } from './context.ts'
import type { ArchiveRow } from './repository.ts'

/** Commits get their time a moment before they are part of the log. */
const MARGIN_MS = 1000
/** An outage is told after so long, or once so much waits on the disk of the database. */
const TELL_AFTER_MS = 5 * 60_000
const TELL_FROM_BYTES = 1024 ** 3
/** A server or a destination that takes longer for one command or one piece is given up until the next pass. */
export const SILENCE_LIMIT_MS = 5 * 60_000
const PARTIAL = /\.part$/

interface Look {
  /** Everything committed until then was committed when the server was looked at. */
  at: string
  mark: string
}

/** Does a part of a pass, which ends with an error where nothing answers. */
async function inTime<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limit = AbortSignal.timeout(SILENCE_LIMIT_MS)
  try {
    return await work(AbortSignal.any([signal, limit]))
  } catch (error) {
    if (signal.aborted || !limit.aborted) throw error
    const minutes = SILENCE_LIMIT_MS / 60_000
    throw new EngineError(
      'timeout',
      `The database, or the destination of its log, did not answer within ${minutes} minutes.`,
      'Look whether both are well. It is tried again every minute.',
      { cause: error },
    )
  }
}

/** A piece may have grown since its size was told. */
const grown = () => new Fatal('archive_damaged', 'A piece of the log is larger than pieces are.')

/** Takes finished pieces of the log from the server of a database to its destination. */
export function createShipping(context: LogContext) {
  const { repository, objects, databases, clock } = context
  const emit = tellOf(context)
  const request = (instance: DatabaseInstance, command: ContainerCommand, signal: AbortSignal) =>
    inTime(signal, (limited) => databases.ask(instance, command, limited))

  async function lookAt(instance: DatabaseInstance, signal: AbortSignal): Promise<Look> {
    const { look } = instance.engine.point_in_time!
    const [now = '', mark = ''] = (await request(instance, look(instance.credentials), signal))
      .trim()
      .split('\t')
    return { at: new Date(Date.parse(now) - MARGIN_MS).toISOString(), mark }
  }
  async function cut(instance: DatabaseInstance, signal: AbortSignal): Promise<string> {
    const command = instance.engine.point_in_time!.cut(instance.credentials)
    return (await request(instance, command, signal)).trim()
  }
  async function waitingIn(instance: DatabaseInstance, signal: AbortSignal): Promise<Map<string, number>> {
    const output = await request(instance, instance.engine.point_in_time!.waiting(), signal)
    const lines = output.split('\n').filter((line) => line !== '' && !PARTIAL.test(line.split('\t')[0]!))
    return new Map(
      lines.map((line) => {
        const [name = '', bytes = '0'] = line.split('\t')
        return [name, Number(bytes)]
      }),
    )
  }
  const isNeeded = ({ id }: ArchiveRow) =>
    repository.copies(id).some(({ status }) => status === 'copying' || status === 'ready')

  /** One piece: at its destination and in its row before it goes from the disk of the database. */
  async function ship(
    archive: ArchiveRow,
    instance: DatabaseInstance,
    name: string,
    signal: AbortSignal,
  ): Promise<void> {
    const log = instance.engine.point_in_time!
    if (isNeeded(archive) && !repository.findPiece(archive.id, name)) {
      context.requireRoom(archive.project_id)
      const key = objects.pieceKey(archive, name)
      const written = await inTime(signal, (limited) =>
        objects.write(
          archive,
          key,
          atMost(log.piece_bytes, databases.output(instance, log.read(name), limited), grown),
          limited,
        ),
      )
      const { cut_piece, cut_at } = repository.find(archive.id) ?? archive
      repository.insertPiece({
        ...written,
        archive_id: archive.id,
        name,
        complete_until: name === cut_piece ? cut_at : null,
        archived_at: clock.iso(),
      })
      repository.updateArchive(archive.id, { last_archived_at: clock.iso() })
    }
    await request(instance, log.remove([name]), signal)
  }

  /** The server left pieces out, since too many waited: nothing after that belongs to this archive. */
  async function endAtGap(
    archive: ArchiveRow,
    instance: DatabaseInstance,
    names: string[],
    signal: AbortSignal,
  ): Promise<void> {
    const message =
      'Too much of the log waited for the destination, so that a part of it was left out to save the disk. A new copy is made as soon as the destination answers; moments in between cannot be gone back to.'
    context.db.tx(() => {
      repository.updateArchive(archive.id, { status: 'closed', error: message, waiting_bytes: 0 })
      emit(archive, 'archive_gap', { message, complete_until: archive.complete_until })
    })
    await request(instance, instance.engine.point_in_time!.remove(names), signal)
  }

  /** @param force ends the present piece although nothing was committed since the last look. */
  async function drain(
    archive: ArchiveRow,
    instance: DatabaseInstance,
    signal: AbortSignal,
    force: boolean,
  ): Promise<void> {
    const log = instance.engine.point_in_time!
    const looked = await lookAt(instance, signal)
    const is_quiet = looked.mark === archive.mark && archive.cut_piece === null && !force
    if (force || (archive.cut_piece === null && !is_quiet))
      repository.updateArchive(archive.id, {
        mark: looked.mark,
        cut_piece: await cut(instance, signal),
        cut_at: looked.at,
      })
    const waiting = await waitingIn(instance, signal)
    const names = [...waiting.keys()]
    if (waiting.has(log.gap)) return endAtGap(archive, instance, names, signal)
    const isPiece = (name: string) => log.isPiece(name) && waiting.get(name)! <= log.piece_bytes
    const strange = names.filter((name) => !isPiece(name))
    if (strange.length > 0) await request(instance, log.remove(strange), signal)
    let waiting_bytes = [...waiting.values()].reduce((sum, bytes) => sum + bytes, 0)
    repository.updateArchive(archive.id, { waiting_bytes })
    for (const name of names.filter(isPiece).sort()) {
      await ship(archive, instance, name, signal)
      waiting_bytes -= waiting.get(name)!
      repository.updateArchive(archive.id, { waiting_bytes })
    }
    settle(archive.id, is_quiet ? looked.at : undefined)
  }

  /** Notes up to when everything is at the destination. */
  function settle(id: string, quiet_until: string | undefined): void {
    const archive = repository.find(id)
    if (!archive) return
    const { cut_piece, cut_at } = archive
    if (quiet_until !== undefined) repository.updateArchive(id, { complete_until: quiet_until })
    else if (cut_piece !== null && (!isNeeded(archive) || repository.findPiece(id, cut_piece)))
      repository.updateArchive(id, { complete_until: cut_at, cut_piece: null, cut_at: null })
  }

  function works(archive: ArchiveRow): void {
    if (archive.failing_since === null) return
    context.db.tx(() => {
      repository.updateArchive(archive.id, { failing_since: null, told_at: null, error: null })
      if (archive.told_at !== null) emit(archive, 'archive_working')
    })
  }
  /** Somebody hears of an outage before it fills a disk, and once only. */
  function fails(archive: ArchiveRow, error: unknown): void {
    const { message, hint } = classify(error)
    const now = repository.find(archive.id) ?? archive
    const failing_since = now.failing_since ?? clock.iso()
    const is_long = clock.now() - Date.parse(failing_since) >= TELL_AFTER_MS
    const is_due = now.told_at === null && (is_long || now.waiting_bytes >= TELL_FROM_BYTES)
    const text = [message, hint].filter(Boolean).join(' ')
    context.db.tx(() => {
      repository.updateArchive(archive.id, {
        failing_since,
        error: text,
        ...(is_due ? { told_at: clock.iso() } : {}),
      })
      const { waiting_bytes } = now
      if (is_due) emit(archive, 'archive_failing', { message: text, waiting_bytes, failing_since })
    })
    context.log.warn('The log of a database could not be archived', { archive: archive.id, error })
  }

  return {
    lookAt,
    cut,
    /** One pass over the log of one server; throws what went wrong after noting it. */
    async pass(archive_id: string, signal: AbortSignal, { force = false } = {}): Promise<void> {
      const archive = repository.find(archive_id)
      if (archive?.status !== 'active') return
      // After a restore or an upgrade the server keeps the log of other data.
      if (databases.find(archive.database_id)?.volume_id !== archive.volume_id) return
      const instance = await databases.instance(archive.database_id)
      if (!instance?.engine.point_in_time) return
      try {
        await drain(archive, instance, signal, force)
      } catch (error) {
        if (!signal.aborted) fails(archive, error)
        throw error
      }
      works(repository.find(archive_id) ?? archive)
    },
  }
}
export type Shipping = ReturnType<typeof createShipping>

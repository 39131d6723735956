import type { Schemas } from '@/api/client'
import { duration, words } from '@/lib/format'
import { pageOf } from '@/shell/feature'

export type Job = Schemas['Job']

/** Nouns of the events that tell of a job's progress: of what the jobs work on. */
export const ABOUT = [
  'app',
  'backup',
  'certificate',
  'cron',
  'database',
  'deployment',
  'domain',
  'node',
  'platform',
  'preview',
  'project',
  'service',
  'settings',
  'volume',
]

const KINDS: Record<string, string> = {
  app: 'app',
  dep: 'deployment',
  dom: 'domain',
  prj: 'project',
  db: 'database',
  node: 'node',
}

/** What a job works on, in a word: its id says nothing to anybody. */
export const subjectWord = (id: string) => words(KINDS[id.split('_')[0] ?? ''] ?? id)

/** Page of what a job works on, where it has one. */
export const subjectPage = (id: string) => pageOf(KINDS[id.split('_')[0] ?? ''] ?? '', id)

/** Page of the app, database or other resource that a job is for, where it has one. */
export const aboutPage = ({ about }: Job) => about && pageOf(about.kind, about.id)

export const took = ({ started_at, finished_at }: Job): string =>
  started_at && finished_at ? duration(Date.parse(finished_at) - Date.parse(started_at)) : '–'

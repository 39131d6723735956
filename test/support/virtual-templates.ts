import { readTemplates } from '../../scripts/read-templates.ts'
import { ROOT } from './routes.ts'

/** What the build puts into `#templates`, for tests that run without it. */
export const readShelf = async () => readTemplates(ROOT)

/** Where the workloads of an app or a database live. */
export interface Place {
  project_id: string
  /** Set for what belongs to a preview, which shares a network with nothing else. */
  preview_id?: string | null
}

const PREVIEW = 'ptr-prv-'
/** Name of the network of a place: that of its project, or one of a preview alone. */
export const networkOf = ({ project_id, preview_id }: Place): string =>
  preview_id ? `${PREVIEW}${preview_id.replace('prv_', '')}` : `ptr-${project_id.replace('prj_', '')}`
export const isOfPreview = (name: string): boolean => name.startsWith(PREVIEW)

/** What somebody chose on the way to the deletion of an app. */
export interface DeletionChoice {
  /** The volumes that no other app mounts go as well. */
  volumes: boolean
  skip_backup: boolean
}

/** What goes with an app, what stays, and what the API is asked for. */
export function deletionOf({ volumes, skip_backup }: DeletionChoice) {
  const backup = `A final backup of its configuration and variables${volumes ? ', and of these volumes' : ''}, taken before anything is removed`
  return {
    goes: [
      'Its instances, variables, cron jobs and previews',
      'The images of its releases, and with them every way to roll back',
      'Its domains and the redirects on them, its logs and its history',
      ...(volumes ? ['The volumes that no other app mounts, with everything in them'] : []),
    ],
    stays: [
      ...(skip_backup ? [] : [backup]),
      'The repository',
      volumes ? 'Databases that it uses' : 'Databases and volumes that it uses',
      'Lines of the audit log',
    ],
    query: {
      ...(volumes ? { volumes: true } : {}),
      ...(skip_backup ? { skip_backup: true } : {}),
    },
  }
}

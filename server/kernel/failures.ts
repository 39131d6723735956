import type { ApiError } from './errors.ts'

/**
 * Why a deployment, a backup or any other job failed: one word per cause, for clients to branch on.
 * `Fatal` and `Failure` take these words alone, so a cause that is missing here does not compile.
 * Deployments and jobs enumerate them; a test sees to it that no word is here which nothing makes.
 */
export const FAILURES = {
  // Of any job.
  internal: 'A fault of Portreeve itself; the log of the server has more.',
  interrupted: 'The server stopped in the work, and it could not be taken up again.',
  cancelled: 'It was cancelled.',
  superseded: 'A newer deployment took its place in the queue.',
  unknown_kind: 'This version of Portreeve does not know such work.',
  timeout: 'A step took too long and was stopped.',
  aborted: 'The work was stopped from outside.',
  failed: 'The container engine refused, for a reason of its own.',
  gone: 'The resource of the job was deleted in the meantime.',
  ended: 'The log of the database is no longer archived there.',
  changed: 'The resource of the job has changed since the job was requested.',
  secret_unreadable: 'A stored secret does not open with the key of this installation.',
  disk_full: 'The disk of the server is full.',
  disk_exceeded: 'An instance wrote more beside its volumes than it may, and was stopped.',
  storage_exceeded:
    'The project holds more in volumes and databases than it may, and what grew most was stopped.',
  out_of_memory: 'A program was ended because it used more memory than its limit.',
  // The container engine and the edge.
  engine_unavailable: 'The container engine does not answer.',
  edge_unavailable: 'The edge does not answer.',
  // Further servers.
  node_unreachable: 'A server does not answer.',
  node_host_key: 'A server shows another key than the approved one.',
  node_denied: 'A server does not let the user log in with the key.',
  node_not_root: 'The user of a server cannot become root.',
  node_unsuited: 'A server cannot run this, or cannot be a member; the message says why.',
  node_failed: 'Something on a server failed; the message says what.',
  not_found: 'Something that the work needs does not exist.',
  conflict: 'The state of something does not allow it.',
  image_not_found: 'The registry has no such image or tag.',
  image_denied: 'The registry lets nobody pull the image with what it was given.',
  image_refused: 'The image says more of itself than any real one: labels, variables, ports or volumes.',
  image_gone: 'The image of an earlier release is no longer on the server.',
  start_failed: 'The engine could not start the program.',
  port_refused: 'The engine may not open this port.',
  port_taken: 'Something else has this port of the server.',
  volume_missing: 'A volume is no longer on the server.',
  file_refused: 'The image has something else in the place of an inline file; the message names it.',
  network_in_use: 'Something foreign is connected to the network of the project.',
  // What an API call would have been refused with.
  forbidden: 'Something is not allowed any more.',
  bad_request: 'A value cannot be read.',
  validation_error: 'A value is wrong; the message names it.',
  unavailable: 'The server could not do this at that time.',
  // Where the source comes from.
  git_invalid_url: 'The address is none of a repository.',
  git_forbidden_host: 'The address leads to a place that this server does not connect to.',
  git_unreachable: 'The host of the repository does not answer.',
  git_not_found: 'There is no such repository, or it is private.',
  git_authentication: 'The key or the credential was refused.',
  git_host_key: 'The host showed another key than it had before.',
  git_branch_not_found: 'The repository has no such branch.',
  git_commit_not_found: 'The repository has no such commit.',
  git_empty: 'The repository has no commit.',
  git_too_large: 'The repository is larger than allowed.',
  git_too_many_files: 'The repository has more files than allowed.',
  git_bad_name: 'A file of the repository has a name that no file of the server can have.',
  git_timeout: 'The repository did not arrive in time.',
  git_aborted: 'Fetching was stopped from outside.',
  git_failed: 'Git failed for another reason; the message says which.',
  bad_archive: 'The uploaded archive cannot be unpacked.',
  no_base_directory: 'The source has no such base directory.',
  // How it is built.
  no_stack: 'No stack was recognised, or what was found cannot be built.',
  dockerfile_missing: 'The source has no such Dockerfile.',
  dockerfile_refused: 'The Dockerfile asks for what builds may not do.',
  registry_refused: 'The registry of an image is at an address that this server does not connect to.',
  compose_missing: 'The source has no such compose file.',
  compose_refused: 'The compose file asks for what is not supported.',
  variable_unresolved: 'A variable refers to something that cannot be read.',
  build_failed: 'The build failed; `log` has the lines that tell.',
  // How it starts.
  nothing_live: 'There is no live release to restart.',
  nothing_to_run: 'The app has no process with instances.',
  several_writers: 'More than one instance would write to a volume of one writer.',
  release_failed: 'The release command, or a service that others wait for, failed.',
  release_timeout: 'The release command, or a service that others wait for, did not end in time.',
  exited: 'The program ended before it was ready, or while it was watched.',
  not_ready: 'The program runs, and did not answer in time.',
  instance_gone: 'An instance was removed from outside.',
  // Certificates.
  acme_unreachable: 'The certificate authority does not answer.',
  acme_rate_limited: 'The certificate authority asks to wait.',
  acme_account: 'The account at the certificate authority cannot be used.',
  acme_pending: 'The certificate authority has not decided yet.',
  acme_refused: 'The certificate authority refused; the message says what it said.',
  not_verified: 'A name is no verified domain of the project any more.',
  dns_provider: 'The DNS provider refused or does not answer.',
  dns_provider_missing: 'A wildcard needs a DNS provider, and none is set up.',
  dns_not_propagated: 'A TXT record was written and is not seen.',
  challenge_missing: 'The certificate authority does not offer the challenge.',
  wrong_certificate: 'The certificate does not fit its key and names, or cannot be served.',
  not_revoked: 'The certificate authority did not revoke the certificate.',
  // Databases.
  not_running: 'The database does not run.',
  database_ended: 'The database ended by itself.',
  command_failed: 'A command in the database failed.',
  copy_differs: 'A copy does not hold what the original holds.',
  not_adopted: 'A new server did not write its data in time.',
  app_behind: 'An app could not be started with the new credentials.',
  unknown_engine: 'This version of Portreeve does not know the engine.',
  no_log: 'The engine keeps no log of its changes.',
  incomplete: 'A part of the log of changes is missing.',
  // Backups, previews, cron jobs.
  destination_not_found: 'The destination has no such file.',
  destination_full: 'The destination is full.',
  destination_denied: 'The destination refused what it was given.',
  destination_host_key: 'The destination showed another key than it had before.',
  destination_unreachable: 'The destination does not answer.',
  destination_invalid: 'The destination is not set up as it must be.',
  destination_aborted: 'The transfer was stopped from outside.',
  destination_failed: 'The destination failed for another reason; the message says which.',
  archive_damaged: 'The archive is damaged.',
  archive_missing: 'The archive is not at its destination.',
  archive_key_needed: 'The archive is encrypted with a key that was not given.',
  archive_wrong_key: 'The archive does not open with the key that was given.',
  files_failed: 'Files of a volume could not be read or written.',
  final_backup_failed: 'The backup before a deletion failed, and nothing was deleted.',
  no_backup: 'There is no backup to copy from.',
  restore_failed: 'A database could not be restored.',
  preview_gone: 'The preview is being removed.',
  run_failed: 'The command of a cron job failed.',
  timed_out: 'The command of a cron job took longer than its time limit.',
  rotation_failed: 'The key of the installation could not be rotated.',
} as const satisfies Readonly<Record<string, string>>

/** A stable word for why a job failed. */
export type FailureCode = keyof typeof FAILURES

/** The word for what an API call would have been refused with. */
export function failureOf({ code }: Pick<ApiError, 'code'>): FailureCode {
  const word = code.toLowerCase()
  return Object.hasOwn(FAILURES, word) ? (word as FailureCode) : 'internal'
}

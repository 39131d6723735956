/** Every state that an app can have, in the order in which it has them. */
export const APP_STATUSES = [
  'building',
  'starting',
  'running',
  'stopping',
  'stopped',
  'failed',
  'crashed',
  'deleting',
] as const

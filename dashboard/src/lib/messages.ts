/** Words that more than one page says. Pages say their own sentences themselves, in the terms of the API. */
export const messages = {
  product: 'Portreeve',
  loading: 'Loading…',
  offline: 'The connection to the server is lost. Trying again…',
  back: 'Connected again.',
  upgraded: 'Portreeve was upgraded. Reload to get the new pages; what you typed is kept.',
  reload: 'Reload',
  retry: 'Try again',
  home: 'To the overview',
  cancel: 'Cancel',
  done: 'Done',
  close: 'Close',
  save: 'Save',
  saved: 'Saved.',
  see_fields: 'Not saved: the marked fields say why.',
  copied: 'Copied.',
  copy_failed: 'The browser does not allow copying. Select the text and copy it by hand.',
  stale: 'This was changed elsewhere while you were editing.',
  take_theirs: 'Take the new state',
  read_only: 'Your role lets you look, not change.',
  expired: 'Your session has ended. Log in again to go on; nothing on this page is lost.',
  no_page: 'There is no such page.',
  broken_page: 'This page has failed.',
  network: 'The server cannot be reached.',
  not_ours:
    'Something else answered in place of the server. A proxy in front of it may ask for a login: reload the page.',
  unknown_time: 'never',
} as const

/** What went wrong on the way, where the server had no sentence of its own. */
export const byStatus = (status: number): string =>
  status >= 500 ? 'The server could not answer.' : `The server refused this (${status}).`

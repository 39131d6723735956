import { type Mail, MailError, type MailMessage } from './mail.ts'

/** Mail that is kept instead of sent. */
export interface FakeMail extends Mail {
  /** Everything that was sent, oldest first. */
  sent: MailMessage[]
  /** `off`: no server is configured; `fails`: the server takes nothing. */
  mode: 'on' | 'off' | 'fails'
}

/** An outbox in memory, for tests of everything above it. Off at first, as in a fresh installation. */
export function createFakeMail(mode: FakeMail['mode'] = 'off'): FakeMail {
  const mail: FakeMail = {
    sent: [],
    mode,
    isConfigured: () => mail.mode !== 'off',
    async send(message) {
      if (mail.mode === 'off')
        throw new MailError(
          'not_configured',
          'No mail server is configured. Set one with PUT /api/settings/smtp.',
        )
      if (mail.mode === 'fails')
        throw new MailError('refused', 'The mail server did not take the message (554).')
      mail.sent.push(message)
    },
    close: async () => undefined,
  }
  return mail
}

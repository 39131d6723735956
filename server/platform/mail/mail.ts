/** Sending mail: to people whom the platform invites or warns. */
export interface Mail {
  /** Whether a server is configured; without one nothing can be sent. */
  isConfigured(): boolean
  /**
   * Sends one message. Throws MailError with a sentence that says what the server answered.
   * @param signal ends it, whatever of it the server has taken by then.
   */
  send(message: MailMessage, signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

export interface MailMessage {
  to: string
  subject: string
  /** Plain text; the platform sends no HTML. */
  text: string
}

/** The mail server to use, as settings hold it. */
export interface SmtpSettings {
  host: string
  port: number
  /** `tls` from the first byte, `starttls` after the greeting, `none` for a server on the same machine. */
  security: 'tls' | 'starttls' | 'none'
  username?: string
  password?: string
  /** Sender, e.g. `Portreeve <portreeve@example.com>`. */
  from: string
}

/** `message` says in one sentence what went wrong, without a credential. */
export class MailError extends Error {
  readonly code: 'not_configured' | 'forbidden' | 'unreachable' | 'authentication' | 'refused'
  constructor(code: MailError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'MailError'
    this.code = code
  }
}

/** No mail server: what an installation has until one is configured. */
export const NO_MAIL: Mail = {
  isConfigured: () => false,
  send: () =>
    Promise.reject(
      new MailError('not_configured', 'No mail server is configured. Set one with PUT /api/settings/smtp.'),
    ),
  close: () => Promise.resolve(),
}

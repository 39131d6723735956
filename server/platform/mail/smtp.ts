import { addAbortSignal } from 'node:stream'
import type { createTransport, Transporter } from 'nodemailer'
import { redactor } from '#server/kernel/redact'
import type { Dial } from '#server/platform/outbound/outbound'
import { OutboundError } from '#server/platform/outbound/outbound'
import { type Mail, MailError, type SmtpSettings } from './mail.ts'

export interface SmtpMailOptions {
  /** Whether a server is set. */
  isConfigured(): boolean
  /**
   * Read before each message, so that a change of the settings holds at once; null while no server is
   * configured. Throws when its password cannot be read.
   */
  settings(): SmtpSettings | null
  /**
   * Opens the connection: the address of the server is an administrator's input and is checked like any
   * other.
   */
  dial: Dial
  /** Authorities besides the built-in ones, in PEM. */
  ca?: readonly string[]
  /** Time for one message from the connection to the answer. Default 60,000. */
  message_ms?: number
}

/** Without a word from the server. */
const TIMEOUT_MS = 15_000
/** A server that says a word now and then would hold a message, and the place of others, for ever. */
const MESSAGE_MS = 60_000

const TLS_CODE = /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|ERR_TLS|ERR_SSL|INVALID_CA)/
/** What the server said, as one line; a secret that it repeats is taken out. */
function answerOf(response: string | undefined, secrets: readonly string[]): string {
  const line = redactor(secrets)(
    (response ?? '').replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' '),
  ).trim()
  return line === '' ? '.' : `: ${line.slice(0, 300)}`
}

function explain(error: unknown, host: string, secrets: readonly string[]): MailError {
  if (error instanceof OutboundError)
    return new MailError(error.code === 'forbidden' ? 'forbidden' : 'unreachable', error.message, {
      cause: error,
    })
  const {
    code = '',
    response,
    message = '',
  } = error as { code?: string; response?: string; message?: string }
  if (code === 'EAUTH')
    return new MailError(
      'authentication',
      `${host} refused the user name or password${answerOf(response, secrets)}`,
      {
        cause: error,
      },
    )
  if (TLS_CODE.test(code) || /certificate/i.test(message))
    return new MailError(
      'unreachable',
      `${host} did not prove its identity: its TLS certificate is not valid for this server.`,
      { cause: error },
    )
  if (response === undefined && ['ESOCKET', 'ECONNECTION', 'ETIMEDOUT', 'EDNS', 'ETLS'].includes(code))
    return new MailError('unreachable', `${host} does not answer as a mail server (${code}).`, {
      cause: error,
    })
  return new MailError('refused', `${host} did not take the message${answerOf(response, secrets)}`, {
    cause: error,
  })
}

/** Mail over SMTP. One connection per message: a self-hosted platform sends few. */
export function createSmtpMail(options: SmtpMailOptions): Mail {
  const { isConfigured, settings, dial, ca, message_ms = MESSAGE_MS } = options
  const transportFor = (
    create: typeof createTransport,
    smtp: SmtpSettings,
    socket: Awaited<ReturnType<Dial>>,
  ): Transporter =>
    create({
      host: smtp.host,
      port: smtp.port,
      connection: socket,
      secure: smtp.security === 'tls',
      requireTLS: smtp.security === 'starttls',
      ignoreTLS: smtp.security === 'none',
      ...(smtp.username ? { auth: { user: smtp.username, pass: smtp.password ?? '' } } : {}),
      tls: { servername: smtp.host, ...(ca ? { ca: [...ca] } : {}) },
      greetingTimeout: TIMEOUT_MS,
      socketTimeout: TIMEOUT_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  return {
    isConfigured,
    async send(message, signal) {
      const smtp = settings()
      if (!smtp)
        throw new MailError(
          'not_configured',
          'No mail server is configured. Set one with PUT /api/settings/smtp.',
        )
      // Loaded by the first message: most starts send none.
      const { createTransport: create } = await import('nodemailer')
      let transport: Transporter | undefined
      let timer: NodeJS.Timeout | undefined
      try {
        const ends = signal ? { signal } : {}
        const socket = await dial(smtp.host, smtp.port, { timeout_ms: TIMEOUT_MS, ...ends })
        if (signal) addAbortSignal(signal, socket)
        timer = setTimeout(() => socket.destroy(new Error('The message took too long.')), message_ms)
        transport = transportFor(create, smtp, socket)
        await transport.sendMail({
          from: smtp.from,
          to: { name: '', address: message.to },
          subject: message.subject,
          text: message.text,
          // Whoever is away must not answer it: the answer could be one that is mailed about again. Source: RFC 3834.
          headers: { 'Auto-Submitted': 'auto-generated' },
        })
      } catch (error) {
        throw explain(
          error,
          smtp.host,
          smtp.password
            ? [
                smtp.password,
                Buffer.from(smtp.password).toString('base64'),
                Buffer.from(`\0${smtp.username}\0${smtp.password}`).toString('base64'),
              ]
            : [],
        )
      } finally {
        clearTimeout(timer)
        transport?.close()
      }
    },
    close: async () => undefined,
  }
}

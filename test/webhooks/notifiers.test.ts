import { describe, expect, it } from 'vitest'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { discord } from '#server/webhooks/notifiers/discord'
import { email } from '#server/webhooks/notifiers/email'
import { generic } from '#server/webhooks/notifiers/generic'
import type { Notice } from '#server/webhooks/notifiers/notifier'
import { ntfy } from '#server/webhooks/notifiers/ntfy'
import { slack } from '#server/webhooks/notifiers/slack'
import { telegram } from '#server/webhooks/notifiers/telegram'
import { isAskedFor, isTold, noticeOf, severityOf } from '#server/webhooks/notices'

const notice: Notice = {
  id: 'dlv_1',
  type: 'deployment.failed',
  created_at: '2026-01-31T12:00:00.000Z',
  severity: 'error',
  title: 'shop: deployment #3 failed <here>',
  text: 'The build ran out of memory.',
  url: 'https://panel.example.com/deployments/dep_1',
  data: { number: 3 },
}
const now_s = Math.floor(Date.now() / 1000)

describe('a generic message', () => {
  it('is verified by the library of Standard Webhooks', () => {
    const secret = `whsec_${Buffer.from('a key of twenty-four byte').toString('base64')}`
    const request = generic.request(notice, { url: 'https://example.com/hook', secret }, now_s)
    expect(request.mail).toBeUndefined()
    const { headers, body } = request as { headers: Record<string, string>; body: string }
    expect(new StandardWebhook(secret).verify(body, headers)).toMatchObject({
      type: 'deployment.failed',
      data: { number: 3 },
    })
    expect(() => new StandardWebhook(secret).verify(`${body} `, headers)).toThrow()
  })
})

describe('a message to', () => {
  it('Slack shows markup as text', () => {
    const request = slack.request(notice, { url: 'https://hooks.slack.com/services/x' }, now_s)
    expect(JSON.parse((request as { body: string }).body).text).toContain('&lt;here&gt;')
  })
  it('Discord calls nobody', () => {
    const request = discord.request(notice, { url: 'https://discord.com/api/webhooks/x' }, now_s)
    expect(JSON.parse((request as { body: string }).body)).toMatchObject({
      allowed_mentions: { parse: [] },
      embeds: [{ color: 0xc0392b }],
    })
  })
  it('Discord shows Markdown as text: no link leads elsewhere than it says', () => {
    const text = 'Merge [our docs](https://evil.example/a_b) **now** <https://evil.example>'
    const request = discord.request({ ...notice, text }, { url: 'https://discord.com/api/webhooks/x' }, now_s)
    const [embed] = JSON.parse((request as { body: string }).body).embeds
    expect(embed.title).toBe('shop: deployment \\#3 failed \\<here\\>')
    expect(embed.description).toBe(
      'Merge \\[our docs\\]\\(https://evil.example/a_b\\) \\*\\*now\\*\\* \\<https://evil.example\\>',
    )
  })
  it('Telegram names the chat', () => {
    const config = { bot_token: '123456:ABCDEFGHIJ', chat_id: '@deployments' }
    const request = telegram.request(notice, config, now_s) as { url: string; body: string }
    expect(request.url).toBe('https://api.telegram.org/bot123456:ABCDEFGHIJ/sendMessage')
    expect(JSON.parse(request.body)).toMatchObject({ chat_id: '@deployments' })
    expect(telegram.describe(config)).toBe('@deployments')
  })
  it('ntfy has a priority and a token in its header', () => {
    const config = { url: 'https://ntfy.sh', topic: 'ops', token: 'tk_1' }
    const request = ntfy.request(notice, config, now_s) as { headers: Record<string, string>; body: string }
    expect(JSON.parse(request.body)).toMatchObject({ topic: 'ops', priority: 5 })
    expect(request.headers.authorization).toBe('Bearer tk_1')
  })
  it('a mailbox says what happened and where to look', () => {
    const { mail } = email.request(notice, { to: 'ops@example.com' }, now_s)
    expect(mail).toMatchObject({ to: 'ops@example.com', text: expect.stringContaining(notice.url!) })
  })
  it('a mailbox gets a subject of one line, and no mark that shows text in another order', () => {
    const hidden = { ...notice, title: 'One\r\nBcc: two\u202e', text: 'first\nsecond\u0007' }
    const { mail } = email.request(hidden, { to: 'ops@example.com' }, now_s)
    expect([mail!.subject, mail!.text]).toEqual([
      'One Bcc: two ',
      expect.stringContaining('first\nsecond \n'),
    ])
  })
})

describe('events', () => {
  it('are chosen by type, family or all', () => {
    expect(isAskedFor('deployment.failed', ['deployment.failed'])).toBe(true)
    expect(isAskedFor('deployment.failed', ['deployment.*'])).toBe(true)
    expect(isAskedFor('deployment.failed', ['*'])).toBe(true)
    expect(isAskedFor('deployment.failed', ['app.*', 'deployment.live'])).toBe(false)
  })
  it('of people, settings and steps are not told to anybody', () => {
    for (const type of ['settings.updated', 'project.member_added', 'deployment.step', 'login.failed'])
      expect(isTold(type), type).toBe(false)
  })
  it('have a severity', () => {
    expect(severityOf('app.crashed')).toBe('error')
    expect(severityOf('deployment.finished')).toBe('success')
    expect(severityOf('deployment.cancelled')).toBe('warning')
    expect(severityOf('app.created')).toBe('info')
  })
  it('of an alert say what is wrong, as gravely as the alert', () => {
    const told = (type: string, payload: Record<string, unknown>) => {
      const rest = { seq: 1, project_id: 'prj_1', app_id: null, deployment_id: null, actor_id: null }
      const event = { ...rest, type, payload, created_at: notice.created_at }
      const { title, text, severity } = noticeOf('dlv_1', event, { dashboard: null })
      return [title, text, severity]
    }
    const message = 'A deployment of shop failed.'
    expect(told('alert.firing', { message, severity: 'warning' })).toEqual([
      `Alert: ${message}`,
      '',
      'warning',
    ])
    expect(told('alert.firing', { message, severity: 'critical' })[2]).toBe('error')
    const over = { message: `Over: ${message}`, severity: 'critical' }
    expect(told('alert.resolved', over)).toEqual([`Over: ${message}`, '', 'success'])
  })
  it.each([
    ['deployment.failed', 'shop: deployment #3 failed'],
    ['deployment.finished', 'shop: deployment #3 finished'],
    ['deployment.live', 'shop: deployment #3 is live'],
    ['preview.failed', 'shop: the preview of #3 failed'],
    ['preview.waiting', 'shop: the preview of #3 is waiting'],
  ])('of %s are a sentence', (type, title) => {
    const rest = { seq: 1, project_id: 'prj_1', app_id: 'app_1', deployment_id: null, actor_id: null }
    const event = { ...rest, type, payload: { number: 3 }, created_at: notice.created_at }
    expect(noticeOf('dlv_1', event, { app: 'shop', dashboard: null }).title).toBe(title)
  })
  it.each([
    ['backup.failed', { target: 'database', target_name: 'shop-db' }, 'backup shop-db: failed'],
    [
      'certificate.failed',
      { names: ['shop.example.com', 'www.shop.example.com'] },
      'certificate shop.example.com: failed',
    ],
  ])('of %s say what it is about', (type, payload, title) => {
    const rest = { seq: 1, project_id: 'prj_1', app_id: null, deployment_id: null, actor_id: null }
    const event = { ...rest, type, payload, created_at: notice.created_at }
    expect(noticeOf('dlv_1', event, { dashboard: null }).title).toBe(title)
  })
  it('name the app and lead to the deployment', () => {
    const event = {
      seq: 1,
      type: 'deployment.failed',
      project_id: 'prj_1',
      app_id: 'app_1',
      deployment_id: 'dep_1',
      actor_id: null,
      payload: { number: 3, error: 'It broke.' },
      created_at: notice.created_at,
    }
    expect(noticeOf('dlv_1', event, { app: 'shop', dashboard: 'https://panel.example.com' })).toMatchObject({
      title: 'shop: deployment #3 failed',
      text: 'It broke.',
      url: 'https://panel.example.com/deployments/dep_1',
    })
  })
})

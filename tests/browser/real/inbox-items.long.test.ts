import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Receiver, receiver, status } from '../../../src/tools/sinks/receiver.fixture.ts'
import { asking, originOf } from '../../e2e/admin/people.ts'
import { connect } from '../../fixtures/clients.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { startHttpServer } from '../../fixtures/http-server.ts'
import { startRedis } from '../../fixtures/redis.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { visit } from '../visit.ts'
import { expectFits, expectWhole, go, title } from './pages.ts'

/** Removes the last record of the audit log of a gateway that does not run. */
function removeLastRecord({ path }: Folder): void {
  const audit = join(path, 'state/audit')
  const files = readdirSync(audit, { recursive: true }).map(String)
  const last = files
    .filter((name) => name.endsWith('.jsonl'))
    .sort()
    .at(-1)
  const segment = join(audit, last ?? expect.fail('there is no audit log'))
  const records = readFileSync(segment, 'utf8').trimEnd().split('\n')
  writeFileSync(segment, `${records.slice(0, -1).join('\n')}\n`)
}

/** The items that were posted so far, by id. */
const posted = ({ deliveries }: Receiver) =>
  deliveries.flatMap(({ body }) => body.items as { readonly id: string; readonly severity: string }[])

inBrowser('V7: what needs attention', () => {
  test('V7, V8: a modified audit log, an expiring key, an unreachable Redis and an approval are reported with their actions, and to the webhooks', async () => {
    await using open = new AsyncDisposableStack()
    const folder = open.use(await temporaryFolder())
    const redis = open.use(await startRedis())
    const orders = open.use(await startHttpServer())
    const [inboxHook, approvalHook] = [open.use(await receiver(status(200))), open.use(await receiver(status(204)))]
    const config = {
      history: {},
      mcpServers: { orders: { url: orders.url, approve: ['echo'] } },
      stores: { path: './state', redis: { url: redis.url } },
      approvals: { wait: '2m', webhook: approvalHook.url },
      inbox: { webhook: inboxHook.url },
    }
    {
      await using before = await startToolway(config, { folder })
      await asking(originOf(before), before.token)('config/reload', { body: {} })
    }
    removeLastRecord(folder)
    const toolway = open.use(await startToolway(config, { folder }))
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    const visitor = open.use(await visit(browser, originOf(toolway), toolway.token))
    const { page } = visitor
    const item = (text: string) =>
      page.getByRole('list', { name: 'Needs attention' }).getByRole('listitem').filter({ hasText: text })
    const ids = () => posted(inboxHook).map(({ id }) => id)

    await item('The audit log was modified while Toolway was not running').waitFor()
    await expect.poll(ids).toContain('audit:changed')
    await item('while Toolway was not running').getByRole('button', { name: 'Verify' }).click()
    const chain = item('The audit log was modified after it was written')
    await chain.getByRole('button', { name: 'Verify again' }).waitFor()
    await expect.poll(ids).toContain('audit:chain')
    await chain.getByRole('button', { name: 'Verify again' }).click()
    await page.getByText('Verification started.').last().waitFor()
    await chain.getByRole('link', { name: 'Open the log' }).click()
    await title(page, 'Audit')
    await page.getByText('Run toolway audit verify for details.').waitFor()

    await go(page, 'Keys')
    await page.getByRole('button', { name: 'Create a key' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('bot')
    await page.getByRole('dialog').getByLabel('Expires after').selectOption('7 days')
    await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Done' }).click()
    await go(page, 'Overview')
    const key = item('The key bot expires soon')
    await key.getByRole('link', { name: 'Rotate…' }).waitFor()
    await expect.poll(ids).toContain('key:bot')

    await redis.stop()
    const store = item('Redis cannot be reached')
    await store.getByRole('link', { name: 'Show settings' }).waitFor()
    await expect.poll(ids).toContain('store:redis')
    await expectWhole(visitor)
    await store.getByRole('link', { name: 'Show settings' }).click()
    await title(page, 'Configuration')
    await go(page, 'Overview')
    await redis.start()
    await store.waitFor({ state: 'detached' })

    await key.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog', { name: 'Revoke?' }).getByRole('button', { name: 'Revoke' }).click()
    await key.waitFor({ state: 'detached' })
    const { json: keys } = await asking(originOf(toolway), toolway.token)('keys')
    expect(keys.keys.map(({ id }: { readonly id: string }) => id)).toEqual([])

    const client = open.use(await connect('v1', { endpoint: toolway }))
    const call = client.callTool('orders__echo', { message: 'a secret order' })
    const { body } = await approvalHook.delivery(1)
    expect(body).toMatchObject({ event: 'approval', agent: 'default', server: 'orders', tool: 'echo' })
    await expect.poll(ids).toContain(`approval:${body.id}`)
    await page.goto(String(body.url))
    await page.getByRole('button', { name: 'Allow once' }).click()
    expect((await call).isError).toBeFalsy()
    expect(JSON.stringify([...inboxHook.deliveries, ...approvalHook.deliveries])).not.toContain('a secret order')
    // Each item was posted once, as urgent as the dashboard shows it.
    expect(new Set(ids()).size).toBe(ids().length)
    expect(
      Object.fromEntries(posted(inboxHook).map(({ id, severity }) => [id.split(':', 2).join(':'), severity])),
    ).toMatchObject({
      'audit:changed': 'critical',
      'audit:chain': 'critical',
      'key:bot': 'info',
      'store:redis': 'critical',
    })
    await expectFits(visitor)
  })
})

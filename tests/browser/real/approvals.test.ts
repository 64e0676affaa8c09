import { expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { startHttpServer } from '../../fixtures/http-server.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { visit } from '../visit.ts'
import { expectWhole, go, row } from './pages.ts'

inBrowser('V8: approvals', () => {
  test('V8: a call of a client without elicitation waits until it is allowed or denied in the browser', async () => {
    await using open = new AsyncDisposableStack()
    const orders = open.use(await startHttpServer())
    const toolway = open.use(
      await startToolway({
        history: {},
        mcpServers: { orders: { url: orders.url, approve: ['echo'] } },
        approvals: { wait: '2m' },
      }),
    )
    const client = open.use(await connect('v1', { endpoint: toolway }))
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    await using visitor = await visit(browser, new URL(toolway.url).origin, toolway.token)
    const { page } = visitor
    const call = (message: string) => client.callTool('orders__echo', { message })
    const waiting = page
      .getByRole('listitem', { name: 'default wants to call orders.echo' })
      .filter({ has: page.getByRole('timer') })

    // On the first page, with nothing but the keyboard.
    const first = call('first \u202eorder')
    await waiting.waitFor()
    await waiting.getByText('"message": "first \\u{202e}order"').waitFor()
    await waiting.getByText(/^\d min( \d+ s)? left$/).waitFor()
    await expectWhole(visitor)
    await waiting.getByRole('button', { name: 'Allow once' }).focus()
    await page.keyboard.press('Enter')
    expect((await first).isError).toBeFalsy()
    await waiting.waitFor({ state: 'detached' })

    const second = call('second')
    await go(page, 'Approvals')
    await waiting.getByRole('button', { name: 'Deny…' }).click()
    await page.getByLabel('Reason').fill('Not today.')
    await expectWhole(visitor)
    await page.getByRole('dialog').getByRole('button', { name: 'Deny', exact: true }).click()
    expect(JSON.stringify(await second)).toContain('\\"Not today.\\"')
    // The call is answered before the page hears of it, and its buttons would answer the wrong one.
    await waiting.waitFor({ state: 'detached' })

    const third = call('third')
    await waiting.getByRole('button', { name: 'Allow for this session' }).click()
    await third
    await page.getByRole('heading', { level: 1 }).hover()
    expect((await call('fourth')).isError).toBeFalsy()
    await page.getByText('No calls are waiting for approval').waitFor()

    await visitor.follow('/audit?tool=echo')
    await row(page, 'Audit records', 'orders.echo')
    const { json } = (await page.evaluate(
      `fetch('/admin/api/audit?tool=echo&operation=call_tool').then(async (r) => ({ json: await r.json() }))`,
    )) as { json: { rows: Record<string, unknown>[] } }
    expect(json.rows.map(({ approval, approver, decision }) => [decision, approval, approver])).toEqual([
      ['ALLOW', 'session', 'token'],
      ['ALLOW', 'session', 'token'],
      ['DENY', 'deny', 'token'],
      ['ALLOW', 'once', 'token'],
    ])
    expect(visitor.troubles).toEqual([])
  })
})

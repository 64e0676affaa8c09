import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/core/clock.ts'
import { connect } from '../../fixtures/clients.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { visit } from '../visit.ts'
import { expectFits, row, rows, title } from './pages.ts'

const minuteMs = 60_000

/** The time range in the address, in minutes before now. */
function rangeInAddress(page: Page): readonly number[] {
  const { searchParams } = new URL(page.url())
  return ['from', 'to'].map((name) => (Date.now() - Date.parse(searchParams.get(name) ?? '')) / minuteMs)
}

inBrowser('V12: charts of real calls', () => {
  test('V12: dragging across a chart selects the calls of a time range, which is in the address; all charts have one crosshair', async () => {
    await using open = new AsyncDisposableStack()
    let agoMs = 8 * minuteMs
    const clock = { ...systemClock, now: () => systemClock.now() - agoMs }
    const toolway = open.use(
      await startToolway({ history: {}, mcpServers: { probe: stdioServers.probe() } }, { clock }),
    )
    const client = open.use(await connect('v2', { endpoint: toolway }))
    for (let n = 0; n < 3; n++) await client.callTool('probe__echo', { message: `${n}` })
    agoMs = 0
    await client.callTool('probe__fail').catch(() => {})

    const browser = open.adopt(await openBrowser(), (one) => one.close())
    const visitor = open.use(await visit(browser, new URL(toolway.url).origin, toolway.token, { at: '/?by=tool' }))
    const { page } = visitor
    const plots = page.locator('.u-over')
    await expect.poll(() => plots.count()).toBe(4)
    await row(page, 'Statistics by tool', 'probe.echo')
    await row(page, 'Statistics by tool', 'probe.fail')
    /** Moves the pointer on the first chart to a time. The charts end now and begin 15 minutes ago. */
    const pointAt = async (minutesAgo: number) => {
      const { x, y, width } = (await plots.first().boundingBox()) ?? expect.fail('the chart is not on the page')
      await page.mouse.move(x + width * (1 - minutesAgo / 15), y + 40)
    }

    // Nothing is known of the time before the gateway started, and nothing happened since the calls.
    await page.getByRole('button', { name: 'Table of Errors and denials' }).click()
    const table = page.getByRole('table', { name: 'Errors and denials, newest first' })
    await table.getByRole('row').last().getByRole('cell', { name: '–' }).nth(1).waitFor()
    await table.getByRole('row').nth(20).getByRole('cell', { name: '0', exact: true }).nth(1).waitFor()
    await page.getByRole('button', { name: 'Table of Errors and denials' }).click()

    await pointAt(8)
    const lines = () =>
      page
        .locator('.u-cursor-x')
        .evaluateAll((all) => all.map((line) => (line.checkVisibility() ? line.style.transform : 'hidden')))
    await expect.poll(async () => (await lines())[0]).toMatch(/^translate\([1-9]/)
    const [first] = await lines()
    await expect.poll(lines).toEqual([first, first, first, first])
    const times = () => page.locator('.chart .card-head .quiet').allTextContents()
    await expect.poll(async () => new Set(await times()).size).toBe(1)

    await pointAt(10)
    await page.mouse.down()
    await pointAt(6)
    await page.mouse.up()
    await rows(page, 'Statistics by tool', 'probe.fail').waitFor({ state: 'detached' })
    await rows(page, 'Statistics by tool', 'probe.echo').getByRole('cell', { name: '3', exact: true }).waitFor()
    const [from, to] = rangeInAddress(page)
    expect([Math.round(from as number), Math.round(to as number)]).toEqual([10, 6])
    await expectFits(visitor)

    // The address alone leads to the same range and its calls.
    await page.reload()
    await title(page, 'Overview')
    await page.getByRole('link', { name: 'Calls in this range' }).click()
    await title(page, 'Calls')
    await row(page, 'Calls', 'probe.echo')
    await expect.poll(() => rows(page, 'Calls', 'probe.echo', 'answered').count()).toBe(3)
    await expect.poll(() => rows(page, 'Calls').count()).toBe(3)
    expect(rangeInAddress(page).map(Math.round)).toEqual([10, 6])
    await page.getByRole('button', { name: 'Show all' }).click()
    await row(page, 'Calls', 'probe.fail')
    await expect.poll(() => rows(page, 'Calls').count()).toBe(4)
    await expectFits(visitor)
  })
})

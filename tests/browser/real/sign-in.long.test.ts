import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startIssuer, type TestIssuer } from '../../../src/upstream/oauth/issuer.fixture.ts'
import { startResource } from '../../../src/upstream/oauth/resource.fixture.ts'
import { connect } from '../../fixtures/clients.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { type Visit, visit } from '../visit.ts'
import { expectWhole, go, press, row, rows, tabTo, title } from './pages.ts'

inBrowser('V7, V9: sign-in to servers that require OAuth', () => {
  const open = new AsyncDisposableStack()
  let issuer: TestIssuer
  let toolway: LocalToolway
  let visitor: Visit
  /** The URL of a server that is not configured. */
  let unknown: string
  beforeAll(async () => {
    // Another site than the gateway: the browser sends no SameSite cookie when it comes back.
    issuer = open.use(await startIssuer({ host: 'localhost', asksForConsent: true }))
    const start = async () => open.use(await startResource({ issuers: [issuer] })).url
    const config = { mcpServers: { tickets: { url: await start(), auth: { type: 'oauth' } } } }
    unknown = await start()
    toolway = open.use(await startToolway(config))
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    visitor = open.use(await visit(browser, new URL(toolway.url).origin, toolway.token, { elsewhere: issuer.url }))
  })
  afterAll(() => open.disposeAsync())

  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
  const item = (page: Page) =>
    page.getByRole('list', { name: 'Needs attention' }).getByRole('listitem').filter({ hasText: 'tickets' })
  const health = (page: Page, label: string) => page.getByRole('heading', { level: 1 }).getByText(label).waitFor()
  /** Answers the consent page with the keyboard. */
  const consent = async (page: Page, answer: 'Allow' | 'Deny', server: string) => {
    await page.waitForURL(`${issuer.url}/**`)
    await press(page, button(page, answer))
    await page.waitForURL(`**/servers/${server}?signIn=*`)
  }
  const signInFromInbox = async (page: Page, answer: 'Allow' | 'Deny') => {
    await go(page, 'Overview')
    await press(page, item(page).getByRole('button', { name: 'Sign in' }))
    await consent(page, answer, 'tickets')
  }

  test('V7, B6: the inbox leads to the consent page and back with the keyboard; denied, granted, revoked', async () => {
    const { page, context } = visitor
    // Servers are connected on first use.
    await using client = await connect('v2', { endpoint: toolway })
    await client.listTools()
    await item(page).waitFor()
    await expectWhole(visitor)
    const watcher = await context.newPage()
    await watcher.goto('/')
    await item(watcher).waitFor()
    await watcher.evaluate('window.loaded = "once"')

    await signInFromInbox(page, 'Deny')
    await page.getByRole('alert').getByText('Access was denied').waitFor()
    await health(page, 'needs sign-in')
    await expectWhole(visitor)
    expect(issuer.tokenRequests).toEqual([])
    await item(watcher).waitFor()

    await signInFromInbox(page, 'Allow')
    await health(page, 'healthy')
    expect(await page.getByRole('alert').count()).toBe(0)
    expect(issuer.tokenRequests).toMatchObject([{ grant_type: 'authorization_code', code_verifier: /^[\w-]{43}$/ }])
    await row(page, 'Tools', 'work')
    await item(watcher).waitFor({ state: 'detached' })
    await expectWhole(visitor)

    await press(page, page.getByRole('link', { name: 'View tools' }))
    await press(page, page.getByRole('link', { name: 'tickets__work', exact: true }))
    await title(page, 'tickets__work')
    await tabTo(page, page.getByRole('tab', { name: 'Definition' }))
    await page.keyboard.press('ArrowRight')
    await press(page, button(page, 'Run'))
    const outcome = page.getByTestId('outcome')
    await outcome.getByText('done', { exact: true }).waitFor()

    // The server rejects the token, and the authorization server the refresh token.
    issuer.behaviour.refuseRefresh = { status: 400, error: 'invalid_grant' }
    issuer.revoke()
    await press(page, button(page, 'Run'))
    await outcome.getByRole('link', { name: 'AUTH_REQUIRED' }).waitFor()
    // The failed call is enough for the inbox; nobody refreshes the tools.
    await item(watcher).waitFor()
    await visitor.follow('/servers/tickets')
    await health(page, 'needs sign-in')
    issuer.behaviour.refuseRefresh = undefined
    await signInFromInbox(page, 'Allow')
    await health(page, 'healthy')
    await item(watcher).waitFor({ state: 'detached' })
    expect(await watcher.evaluate('window.loaded')).toBe('once')
    await watcher.close()
    expect(visitor.troubles).toEqual([])
  })

  test('V9: a new server that requires OAuth says so when tested; after saving, its page offers the sign-in', async () => {
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    await go(page, 'Servers')
    await press(page, button(page, 'Add server'))
    await tabTo(page, dialog.getByRole('textbox', { name: /Command, URL/ }))
    await page.keyboard.insertText(unknown)
    await tabTo(page, dialog.getByRole('textbox', { name: 'Name (optional)' }))
    await page.keyboard.type('added')
    await press(page, button(page, 'Test'))
    const tested = dialog.getByRole('region', { name: 'Test of added' })
    await tested.getByText('needs sign-in').waitFor()
    await expectWhole(visitor)
    await press(page, button(page, 'Review'))
    await dialog.locator('.added', { hasText: 'oauth' }).waitFor()
    await press(page, button(page, 'Save'))
    await title(page, 'added')
    await health(page, 'needs sign-in')
    expect(await readFile(toolway.configFile, 'utf8')).toMatch(/"added":.*"type": ?"oauth"/s)
    await press(page, button(page, 'Sign in'))
    await consent(page, 'Allow', 'added')
    await health(page, 'healthy')

    // A saved server is tested with its token.
    await press(page, button(page, 'Edit'))
    await tabTo(page, dialog.getByRole('textbox', { name: 'description' }))
    await page.keyboard.type('Signed in')
    await press(page, dialog.getByRole('button', { name: 'Test' }))
    await dialog
      .getByText(/^1 tool/)
      .first()
      .waitFor()
    page.once('dialog', (question) => void question.accept())
    await page.keyboard.press('Escape')
    await go(page, 'Servers')
    expect(await rows(page, 'Servers', 'needs sign-in').count()).toBe(0)

    // The sign-in can be ended, at once.
    await press(page, page.getByRole('link', { name: 'added', exact: true }))
    await page.getByText(`granted by ${issuer.url}`).waitFor()
    await expectWhole(visitor)
    await press(page, button(page, 'Sign out of added'))
    await press(page, dialog.getByRole('button', { name: 'Sign out' }))
    await health(page, 'needs sign-in')
    await page.getByText('granted by').waitFor({ state: 'detached' })
    expect(visitor.troubles).toEqual([])
  })
})

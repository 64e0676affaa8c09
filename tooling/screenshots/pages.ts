import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { BrowserSetup } from '../../tests/browser/real/setup.ts'

export interface Picture {
  readonly name: string
  readonly path: string
  /** What is done on the page before it is looked at. */
  prepare?(page: Page): Promise<void>
}

/** Every page of the dashboard, with something to see on it. Calls were made from `since` to `until`. */
export function picturesOf({ files }: BrowserSetup, since: number, until: number): readonly Picture[] {
  const range = `from=${new Date(since).toISOString()}&to=${new Date(until).toISOString()}`
  const newest = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).first().click()
  return [
    { name: 'overview', path: `/?${range}` },
    { name: 'servers', path: '/servers' },
    { name: 'server', path: '/servers/orders' },
    { name: 'tools', path: '/tools' },
    { name: 'tool', path: '/tools/filesystem__edit_file' },
    {
      name: 'try-it',
      path: '/tools/filesystem__edit_file?view=try',
      async prepare(page) {
        await page.getByLabel('path').fill(join(files, 'notes.md'))
        await page.getByRole('button', { name: 'Add item' }).click()
        await page.getByLabel('oldText').fill('One way to every tool.')
        await page.getByLabel('newText').fill('One way to every tool, and one log of it.')
        await page.getByLabel('dryRun').selectOption('true')
        await page.getByRole('button', { name: 'Run', exact: true }).click()
        await page.getByRole('dialog').getByRole('button', { name: 'Run' }).click()
        await page.getByTestId('outcome').getByText('+One way').waitFor()
      },
    },
    { name: 'calls', path: '/calls' },
    {
      name: 'call',
      path: '/calls?server=everything&q=get-sum',
      async prepare(page) {
        await newest(page, 'everything.get-sum')
        await page.getByRole('complementary', { name: 'Call' }).getByText('The sum of').first().waitFor()
      },
    },
    { name: 'definition', path: '/pins/crm.find_customer' },
    { name: 'approvals', path: '/approvals' },
    { name: 'policy', path: '/policy' },
    { name: 'policy-edit', path: '/policy?view=edit' },
    { name: 'matrix', path: '/policy?view=matrix&server=filesystem' },
    { name: 'why', path: '/policy?view=why&agent=researcher.junior&tool=filesystem.write_file' },
    {
      name: 'audit',
      path: '/audit',
      async prepare(page) {
        await page.getByRole('button', { name: 'Verify' }).click()
        await page.getByText('intact').waitFor()
        // What says that the check has begun would hide the records.
        await page.getByRole('button', { name: 'Dismiss' }).click()
      },
    },
    { name: 'configuration', path: '/config' },
  ]
}

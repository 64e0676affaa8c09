import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { publishedChart, withPublishedTable } from '../bench/report/published.ts'
import { editorSchema } from '../src/config/editor-schema.ts'
import { configurationReference } from './configuration-reference/page.ts'
import { errorPages } from './error-pages/error-pages.ts'
import { withFixedBudgets, withFixedLimits } from './limit-tables.ts'
import { requirementsPage } from './requirements/page.ts'

const root = new URL('..', import.meta.url)

await writeFile(new URL('toolway.schema.json', root), `${JSON.stringify(editorSchema(), null, 2)}\n`)
await writeFile(new URL('docs/configuration-reference.md', root), configurationReference())
await writeFile(new URL('docs/requirements.md', root), requirementsPage())

const performancePage = new URL('docs/performance.md', root)
await writeFile(performancePage, withPublishedTable(await readFile(performancePage, 'utf8')))
await writeFile(new URL('docs/images/performance.svg', root), publishedChart())

const limitsPage = new URL('docs/operations/limits.md', root)
await writeFile(limitsPage, withFixedLimits(await readFile(limitsPage, 'utf8')))
const overloadPage = new URL('docs/operations/overload.md', root)
await writeFile(overloadPage, withFixedBudgets(await readFile(overloadPage, 'utf8')))

// Pages of codes that are no more go with the folder.
await rm(new URL('docs/errors', root), { recursive: true, force: true })
await mkdir(new URL('docs/errors', root))
for (const [path, text] of await errorPages()) await writeFile(new URL(`docs/${path}`, root), text)

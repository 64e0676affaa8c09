import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fingerprint } from './fingerprint.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const sources = [
  'web/{src,public}/**/*.*',
  'web/*.{html,json}',
  'docs/errors/*.md',
  'src/admin/contract.ts',
  'tooling/build-web.ts',
  'tooling/build/*.ts',
]
const note = join(root, 'node_modules/.cache/toolway/dashboard')

/** Whether web/dist was built from the present sources. */
export const isDashboardBuilt = (): boolean =>
  existsSync(join(root, 'web/dist/index.html')) &&
  existsSync(note) &&
  readFileSync(note, 'utf8') === fingerprint(sources)

/** Remembers from which sources web/dist was built. */
export function noteDashboard(): void {
  mkdirSync(dirname(note), { recursive: true })
  writeFileSync(note, fingerprint(sources))
}

import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { InlineConfig, Rolldown } from 'vite'
import { noteDashboard } from './build/dashboard.ts'
import { noticesFor } from './build/notices.ts'

/**
 * Builds the dashboard into web/dist: `node tooling/build-web.ts`.
 * With `--dev [URL]` it serves it with hot reload instead, in front of a Toolway that runs at URL.
 */

const folder = fileURLToPath(new URL('../web/', import.meta.url))

/** Whether a module belongs to the main script: everything but the other pages and what only they or the charts need. */
const isShared = (id: string): boolean =>
  id.includes('/node_modules/')
    ? /\/node_modules\/(?:@preact|preact)\//.test(id)
    : !/\/web\/src\/(pages\/(?!(?:overview|sign-in|not-found)\/|servers\/action-outcome)|(?:components\/markdown|config-edit|schema-form)\/|shell\/search-box|charts\/plot)|\/docs\//.test(
        id,
      )

const config: InlineConfig = {
  configFile: false,
  root: folder,
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: `${folder}dist`,
    emptyOutDir: true,
    // light-dark() and oklch() as they are: lowering them doubles the style sheet.
    target: ['chrome125', 'edge125', 'firefox128', 'safari18'],
    // A strict CSP knows no data: fonts or styles, and inlined assets would be refused.
    assetsInlineLimit: 0,
    modulePreload: false,
    // One style sheet for all pages: it is small, and a page never shows before its styles.
    cssCodeSplit: false,
    reportCompressedSize: false,
    // What several pages use belongs to the main script: otherwise the overview would load 20 small files in turn.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'app', test: isShared }] } } },
  },
}

/** Vite is a development dependency: an installation without those has the built dashboard, or none. */
async function vite(): Promise<typeof import('vite') | undefined> {
  try {
    return await import('vite')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw thrown
  }
}

async function serve({ createServer }: typeof import('vite'), target: string): Promise<void> {
  const server = await createServer({
    ...config,
    logLevel: 'info',
    // Toolway checks Host and Origin exactly, so the proxy must ask in its name.
    server: { proxy: { '/admin/api': { target, changeOrigin: true, headers: { origin: target } } } },
  })
  await server.listen()
  server.printUrls()
}

const [mode, target = 'http://127.0.0.1:4322'] = process.argv.slice(2)
const tool = await vite()
if (!tool) {
  const built = existsSync(`${folder}dist/index.html`)
  process.stderr.write(
    `Vite is not installed, so ${built ? 'the dashboard stays as it was built' : 'there is no dashboard'}.\n`,
  )
} else if (mode === '--dev') await serve(tool, target)
else {
  // A test runner's own value would build the larger variant for development.
  process.env.NODE_ENV = 'production'
  const { output } = (await tool.build(config)) as Rolldown.RolldownOutput
  const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
  writeFileSync(`${folder}dist/THIRD-PARTY-NOTICES.md`, noticesFor(modules))
  noteDashboard()
}

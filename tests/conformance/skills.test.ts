import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../fixtures/folders.ts'
import { serveSkills, skillText } from '../fixtures/skill-server.ts'
import { startClientDriver } from './client-driver.ts'
import { judge } from './judge.ts'
import { type Revision, runScenario } from './run.ts'
import { openGatewayWith } from './toolway.ts'

const files = {
  'SKILL.md': skillText('git-workflow', 'Branches and commits.', 'Follow templates/branch.md.'),
  'templates/branch.md': 'feature/NAME',
}

describe('conformance of the skills extension', () => {
  const open = new AsyncDisposableStack()
  let url: string

  beforeAll(async () => {
    const legacy = open.use(await serveSkills('legacy', { 'acme/git-workflow': files }))
    const modern = open.use(
      await serveSkills('modern', { refunds: { 'SKILL.md': skillText('refunds', 'Pays back.') } }),
    )
    const folder = open.use(await temporaryFolder()).path
    for (const [file, text] of Object.entries({ ...files, 'SKILL.md': skillText('release', 'Releases.') })) {
      const path = join(folder, 'release', file)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, text)
    }
    const mcpServers = { legacy: { url: legacy.url }, modern: { url: modern.url } }
    const gateway = await openGatewayWith({ mcpServers, skills: { folders: [folder] } }, open)
    url = (await gateway.listen()).url
  })
  afterAll(() => open.disposeAsync())

  const scenarios = ['sep-2640-skills-enumeration', 'sep-2640-skills-directory', 'sep-2640-skills-manifest']
  const revisions: Revision[] = ['2025-11-25', '2026-07-28']
  test.each(scenarios.flatMap((scenario) => revisions.map((revision) => [scenario, revision] as const)))(
    'W4: two servers and a folder behind Toolway pass %s %s',
    async (scenario, revision) => {
      const result = await runScenario(scenario, { url, revision })
      expect(result.checks.length).toBeGreaterThan(0)
      expect(judge([result], [])).toEqual({ unexpected: [], stale: [] })
      expect(result.checks.some(({ status }) => status === 'SUCCESS')).toBe(true)
    },
    60_000,
  )

  test.each(['no-prefetch', 'verify-digest', 'verify-size', 'verify-frontmatter'])(
    'W4: towards servers Toolway passes sep-2640-client-%s',
    async (name) => {
      const { command } = open.use(await startClientDriver())
      const result = await runScenario(`sep-2640-client-${name}`, { command, revision: '2026-07-28' })
      expect(judge([result], [])).toEqual({ unexpected: [], stale: [] })
    },
    60_000,
  )
})

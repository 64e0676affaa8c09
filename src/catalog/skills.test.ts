import { expect, test } from 'vitest'
import { silentLog } from '../core/log.ts'
import { resolveResource } from './resolve.ts'
import { SnapshotBuilder } from './snapshot.ts'
import { type FakeSource, fakeSource, namingOf } from './source.fixture.ts'

const skillOf = (path: string, files: readonly string[] = []) => ({
  uri: `skill://${path}/SKILL.md`,
  frontmatter: { name: path.split('/').at(-1), description: 'Does things.' },
  resources: ['SKILL.md', ...files].map((file) => ({ uri: `skill://${path}/${file}`, digest: '', size: 0 })),
})

const snapshotOf = (sources: readonly FakeSource[], strategy: 'prefix' | 'flat' = 'prefix') =>
  new SnapshotBuilder({ sources, naming: namingOf({ strategy }), log: silentLog }).snapshot()

const sources = () => [
  fakeSource('one', { skills: [skillOf('acme/pdf', ['a.md', 'inner/SKILL.md']), skillOf('acme/pdf/inner')] }),
  fakeSource('two', { resources: ['skill://acme/pdf/SKILL.md', 'x:y'], skills: [skillOf('acme/pdf')] }),
  fakeSource('three', { templates: ['skill://{+any}'] }),
]

const found = (snapshot: ReturnType<typeof snapshotOf>, uri: string) =>
  resolveResource(snapshot, uri).map(({ entry, uri: own }) => `${entry.kind} ${entry.server} ${entry.name} ${own}`)

test.each(['prefix', 'flat'] as const)(
  'W4: naming %s: skills keep server and URI, and so do their files',
  (strategy) => {
    const { items } = snapshotOf(sources(), strategy)
    expect(items.skill.map(({ name }) => name)).toEqual([
      'skill://one/acme/pdf/SKILL.md',
      'skill://one/acme/pdf/inner/SKILL.md',
      'skill://two/acme/pdf/SKILL.md',
    ])
    expect(items.skill[0]?.definition).toMatchObject({
      uri: 'skill://one/acme/pdf/SKILL.md',
      resources: [
        { uri: 'skill://one/acme/pdf/SKILL.md' },
        { uri: 'skill://one/acme/pdf/a.md' },
        { uri: 'skill://one/acme/pdf/inner/SKILL.md' },
      ],
    })
  },
)

test.each(['prefix', 'flat'] as const)(
  'W4: naming %s: a file is read through the innermost skill around it',
  (strategy) => {
    const snapshot = snapshotOf(sources(), strategy)
    const outer = 'skill one skill://acme/pdf/SKILL.md'
    expect(found(snapshot, 'skill://one/acme/pdf/a.md')).toEqual([`${outer} skill://acme/pdf/a.md`])
    expect(found(snapshot, 'skill://one/acme/pdf/inner/SKILL.md')).toEqual([
      'skill one skill://acme/pdf/inner/SKILL.md skill://acme/pdf/inner/SKILL.md',
    ])
    expect(found(snapshot, 'x:y'), 'other resources are not affected').toEqual(['resource two x:y x:y'])
  },
)

test.each([
  'skill://one/acme/pdf/unlisted.md',
  'skill://one/acme//pdf/SKILL.md',
  'skill://one/acme/x/../pdf/SKILL.md',
  'skill://one/acme/pdf/%53KILL.md',
  'skill://one/ACME/pdf/skill.md',
  'skill://one/acme/pdf/a.md?v=1',
  'skill://one/acme%2Fpdf/a.md',
  'skill://one/acme\\pdf\\a.md',
])('W4: %s is not a file of the skill, and no other entry reads it', (uri) => {
  expect(found(snapshotOf(sources()), uri)).toEqual([])
})

test('W4: a resource in the folder of a skill of its server is read through the skill', () => {
  const snapshot = snapshotOf(sources(), 'flat')
  const uri = 'skill://acme/pdf/SKILL.md'
  expect(found(snapshot, uri)).toEqual([`skill two ${uri} ${uri}`])
})

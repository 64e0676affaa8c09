import { expect, test } from 'vitest'
import { brief, project } from '../project.fixture.ts'

const written = (tools: string) => ({ 'toolway.yaml': `mcpServers:\n  github:\n    command: x\n    tools:\n${tools}` })

test('V15: mistakes in overrides are reported with their line', async () => {
  const { problems } = await project(
    written(
      [
        '      inclde: [a]',
        '      create_issue: { name: file_bug, fixed: { repo: 1 }, defaults: { repo: 2 } }',
        '      update_issue: { name: file bug, tag: [a] }',
      ].join('\n'),
    ),
  )
  expect(brief(await problems())).toEqual([
    expect.stringMatching(
      /^5:\d+ mcpServers\.github\.tools\.inclde: expected .*lists are include and exclude, found a list/,
    ),
    expect.stringMatching(/^6:\d+ mcpServers\.github\.tools\.create_issue\.defaults\.repo: expected no default/),
    expect.stringMatching(/^7:\d+ mcpServers\.github\.tools\.update_issue\.name: expected a name of up to 128/),
    expect.stringMatching(/^7:\d+ .*unknown key `tag`; did you mean `tags`\?$/),
  ])
})

test('V15: two tools of a server cannot have one name', async () => {
  const { problems } = await project(written('      a: { name: c }\n      b: { name: c }'))
  expect(brief(await problems())).toEqual([
    expect.stringMatching(/^6:\d+ mcpServers\.github\.tools\.b\.name: expected another name: a has this one/),
  ])
})

test('V15: values for arguments can be lists, sections and variables', async () => {
  const { load } = await project(written('      a: { fixed: { x: [1, { y: 2 }], z: "${ZED}" }, tags: [t] }'))
  const { config } = await load({ env: { ZED: 'zed' } })
  expect(config.mcpServers.github?.tools).toEqual({
    ...{ include: ['*'], exclude: [] },
    a: {
      ...{ hidden: false, hide: [], defaults: {}, annotations: {}, tags: ['t'] },
      fixed: { x: [1, { y: 2 }], z: 'zed' },
    },
  })
})

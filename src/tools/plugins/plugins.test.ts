import { chmod, chown, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runTool } from '../access.fixture.ts'
import type { Tool } from '../define-tool.ts'
import { pluginFolder, toolSource } from './plugins.fixture.ts'

const said = async (tool: Tool | undefined, args: object = {}) =>
  (await runTool(tool as Tool, args)).body.value.content?.[0]?.text

describe('plugins', () => {
  test("S2: a TypeScript module provides tools, with Toolway's own toolway and zod in any folder", async () => {
    await using folder = await pluginFolder()
    await folder.write({ 'tools.ts': toolSource('greet', '`hello ${word}`') })
    await using plugins = await folder.load('tools.ts')
    expect(plugins.tools.map(({ name }) => name)).toEqual(['greet'])
    expect(plugins.tools[0]?.definition.inputSchema).toMatchObject({ properties: { word: { description: 'A word.' } } })
    expect(await said(plugins.tools[0], { word: 'you' })).toBe('hello you')
    const refusal = await runTool(plugins.tools[0] as Tool, { word: 7 }).catch((error) => error)
    expect(refusal).toMatchObject({ code: 'INVALID_ARGUMENTS' })
    expect(plugins.filesToWatch).toEqual([join(folder.path, 'tools.ts')])
  })

  test('S2: a module may export by default, by name and in lists, and sinks as well', async () => {
    await using folder = await pluginFolder()
    await folder.write({
      'many.ts': `
        import { defineSink, defineTool, ToolwayError, textResult } from 'toolway'
        import * as z from 'zod'
        const tool = (name: string) => defineTool({ name, description: name, input: z.object({}), run: () => textResult(name) })
        export const one = tool('one')
        export const limit = 7
        export function help() {}
        export default [one, tool('two'), defineSink({ name: 'wiki', description: 'Pages.', write: () => 'x:1' })]
      `,
    })
    await using plugins = await folder.load('many.ts')
    expect(plugins.tools.map(({ name }) => name).sort()).toEqual(['one', 'two'])
    expect(plugins.sinks.map(({ name }) => name)).toEqual(['wiki'])
  })

  test('S2: a folder brings its index, or else each of its modules', async () => {
    await using folder = await pluginFolder()
    await folder.write({
      'each/a.ts': toolSource('a'),
      'each/b.mjs': toolSource('b').replace(': z.ZodObject', ''),
      'each/a.test.ts': 'throw new Error()',
      'each/_helper.ts': 'throw new Error()',
      'each/notes.md': '',
      'indexed/index.ts': toolSource('c', 'shout("c")').replace(
        'import *',
        "import { shout } from './shout.ts'\nimport *",
      ),
      'indexed/shout.ts': 'export const shout = (text: string) => text.toUpperCase()',
    })
    await using plugins = await folder.load('each', 'indexed')
    expect(plugins.tools.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
    expect(await said(plugins.tools[2])).toBe('C')
    expect(plugins.filesToWatch).toContain(join(folder.path, 'indexed/shout.ts'))
  })

  test('G8: a changed module is loaded again, also if only one of its imports changed; an unchanged one is not', async () => {
    await using folder = await pluginFolder()
    const main = toolSource('t', 'word()').replace('import *', "import { word } from './word.ts'\nimport *")
    await folder.write({
      'main.ts': main.replace('({ word }, context)', '()'),
      'word.ts': "export const word = () => 'old'",
    })
    await using first = await folder.load('main.ts')
    await using same = await folder.load('main.ts')
    expect(same.tools[0]).toBe(first.tools[0])
    await folder.write({ 'word.ts': "export const word = () => 'new one'" })
    await using next = await folder.load('main.ts')
    expect(await said(next.tools[0])).toBe('new one')
    expect(await said(first.tools[0])).toBe('old')
  })

  const commonJs = (exported: string) => `
    const { defineTool } = require('toolway')
    const z = require('zod')
    const { word } = require('./word.cjs')
    const tool = defineTool({ name: 't', description: '', input: z.object({}), run: () => word() })
    ${exported}`

  test.each(['module.exports = tool', 'module.exports = [tool]', 'module.exports = { tool }', 'exports.tool = tool'])(
    'S2, G8: a CommonJS module and what it requires are loaded as well, again after a change: %s',
    async (exported) => {
      await using folder = await pluginFolder()
      await folder.write({
        'main.cjs': commonJs(exported),
        'word.cjs': "exports.word = () => require('./word.json').word",
        'word.json': '{ "word": "old" }',
      })
      await using first = await folder.load('main.cjs')
      expect(await said(first.tools[0])).toBe('old')
      expect(first.tools).toHaveLength(1)
      expect(first.filesToWatch).toEqual(['main.cjs', 'word.cjs'].map((file) => join(folder.path, file)))
      await folder.write({ 'word.cjs': "exports.word = () => 'new one'" })
      await using next = await folder.load('main.cjs')
      expect(await said(next.tools[0])).toBe('new one')
    },
  )

  test('S2, G8: a CommonJS module in a folder behind a symbolic link is loaded as well, again after a change', async () => {
    await using folder = await pluginFolder()
    await folder.write({
      'real/main.cjs': commonJs('exports.tool = tool'),
      'real/word.cjs': "exports.word = () => 'old'",
    })
    await symlink(join(folder.path, 'real'), join(folder.path, 'link'))
    await using first = await folder.load('link/main.cjs')
    expect(await said(first.tools[0])).toBe('old')
    await folder.write({ 'real/word.cjs': "exports.word = () => 'new one'" })
    await using next = await folder.load('link/main.cjs')
    expect(await said(next.tools[0])).toBe('new one')
  })

  test('S2: the reason why a module does not load is one sentence', async () => {
    await using folder = await pluginFolder()
    await folder.write({ 'a.ts': "throw new Error('There is no key.')" })
    expect(await folder.problems('a.ts')).toEqual([expect.stringContaining('There is no key. Fix it')])
  })

  test('J4: refuses a CommonJS module that requires a file that other users can change', async () => {
    await using folder = await pluginFolder()
    await folder.write({
      'tool.ts': `import { word } from './main.cjs'\n${toolSource('t', 'word')}`,
      'main.cjs': "exports.word = require('./word.cjs').word",
      'word.cjs': "exports.word = 'x'",
    })
    expect(await folder.problems('tool.ts')).toEqual([])
    await chmod(join(folder.path, 'word.cjs'), 0o666)
    expect(await folder.problems('tool.ts')).toEqual([expect.stringContaining('Other users can write to /word.cjs')])
  })

  test('J4: a CommonJS module cannot import a file that other users can change', async () => {
    await using folder = await pluginFolder()
    const imported = "const word = async () => (await import('./word.mjs')).word()"
    await folder.write({
      'main.cjs': commonJs('exports.tool = tool').replace("const { word } = require('./word.cjs')", imported),
      'word.mjs': "import { textResult } from 'toolway'\nexport const word = () => textResult('x')",
    })
    await using plugins = await folder.load('main.cjs')
    await chmod(join(folder.path, 'word.mjs'), 0o666)
    const failure = await said(plugins.tools[0]).catch(({ cause }) => cause)
    expect(String(failure)).toContain('Other users can write to')
    await chmod(join(folder.path, 'word.mjs'), 0o644)
    expect(await said(plugins.tools[0])).toBe('x')
  })

  test('G8: a broken module is loaded once it is repaired', async () => {
    await using folder = await pluginFolder()
    await folder.write({ 'a.ts': 'export const x = ' })
    expect(await folder.problems('a.ts')).toHaveLength(1)
    await folder.write({ 'a.ts': toolSource('mended') })
    expect(await folder.problems('a.ts')).toEqual([])
  })
})

describe('broken plugins', () => {
  test.each([
    ['bad syntax', 'const a = 1\nexport const x = }', /^\/a\.ts cannot be loaded.*Correct/],
    ['TypeScript that is more than types', 'enum A { x }\nexport default A.x', /TypeScript.*do not use enums/],
    ['a module that is not there', "import 'left-pad'", /import .*left-pad/],
    ['a file that is not there', "import './nowhere.ts'", /import that cannot be resolved/],
    ['a name that toolway does not have', "import { defineTol } from 'toolway'", /cannot be loaded.*defineTol/],
    ['what it throws itself', "throw new Error('no database')", /failed to load: no database/],
    ['nothing to offer', 'export const x = 1', /exports neither tools nor sinks; .*defineTool or defineSink/],
    ['a function by default', 'export default () => 1', /default export that is not a tool/],
    ['an empty list', 'export default []', /default export that is not a tool/],
    [
      'a tool that was not made',
      "export const t = { name: 't', run() {} }",
      /"t", which looks like a tool .* defineTool/,
    ],
    [
      'a sink that was not made',
      "export const s = { name: 's', write() {} }",
      /"s", which looks like a sink .* defineSink/,
    ],
    ['a name of ours', toolSource('hash'), /^Both Toolway and \/a\.ts define the tool hash; rename/],
  ])('S2: %s is refused, with the file and what to do', async (_, source, problem) => {
    await using folder = await pluginFolder()
    await folder.write({ 'a.ts': source })
    const problems = await folder.problems('a.ts')
    expect(problems).toEqual([expect.stringMatching(problem)])
    expect(problems[0]).not.toContain('toolway-plugin')
  })

  test('S2: one broken plugin refuses all of them, and each broken one is named', async () => {
    await using folder = await pluginFolder()
    await folder.write({ 'good.ts': toolSource('good'), 'twin.ts': toolSource('good'), 'bad.ts': 'throw 1' })
    const problems = await folder.problems('good.ts', 'bad.ts', 'twin.ts', 'none.ts', '.')
    expect(problems.map((problem) => problem.split(' ').slice(0, 4).join(' '))).toEqual([
      'There is no plugin',
      '/bad.ts failed to load:',
      '/bad.ts failed to load:',
      'Both /good.ts and /twin.ts',
      'Both /twin.ts and /good.ts',
      'Both /good.ts and /twin.ts',
    ])
  })
})

describe.skipIf(process.getuid === undefined)('plugins that others could change', () => {
  test('J4: a file or folder that the group or others can write to is refused, and so is any folder above', async () => {
    await using folder = await pluginFolder()
    await folder.write({ 'a/b/tool.ts': toolSource('t') })
    expect(await folder.problems('a/b/tool.ts')).toEqual([])
    for (const path of ['a/b/tool.ts', 'a/b', 'a']) {
      for (const mode of [0o020, 0o002]) {
        const own = path.endsWith('.ts') ? 0o644 : 0o755
        await chmod(join(folder.path, path), own | mode)
        expect(await folder.problems('a/b/tool.ts')).toEqual([
          `The plugin /a/b/tool.ts was not loaded: Other users can write to /${path}; run "chmod go-w /${path}".`,
        ])
        expect(await folder.problems('a/b')).toHaveLength(1)
        await chmod(join(folder.path, path), own)
      }
    }
  })

  test('J4: in a sticky folder others cannot touch what is ours, but they can put things beside it', async () => {
    await using folder = await pluginFolder()
    await folder.write({ 'shared/own/tool.ts': toolSource('t'), 'shared/tool.ts': toolSource('u') })
    await chmod(join(folder.path, 'shared'), 0o1777)
    expect(await folder.problems('shared/own/tool.ts')).toEqual([])
    expect(await folder.problems('shared/tool.ts')).toEqual([expect.stringContaining('move the plugin')])
    expect(await folder.problems('shared')).toEqual([expect.stringContaining('move the plugin')])
  })

  test('J4: a link is as safe as its own folder and its target', async () => {
    await using folder = await pluginFolder()
    await folder.write({ 'real/tool.ts': toolSource('t'), 'open/tool.ts': toolSource('u') })
    await mkdir(join(folder.path, 'links'))
    await symlink('../real/tool.ts', join(folder.path, 'links/good.ts'))
    await symlink('../open/tool.ts', join(folder.path, 'links/bad.ts'))
    await symlink(join(folder.path, 'links/good.ts'), join(folder.path, 'open/hop.ts'))
    await symlink('../open/hop.ts', join(folder.path, 'links/over.ts'))
    await symlink('loop.ts', join(folder.path, 'links/loop.ts'))
    await chmod(join(folder.path, 'open'), 0o777)
    expect(await folder.problems('links/good.ts')).toEqual([])
    for (const link of ['bad', 'over']) {
      expect(await folder.problems(`links/${link}.ts`)).toEqual([
        expect.stringContaining('Other users can write to /open'),
      ])
    }
    expect(await folder.problems('links/loop.ts')).toHaveLength(1)
  })

  test('J4: refuses a plugin that imports a file that other users can change', async () => {
    await using folder = await pluginFolder()
    await folder.write({ 'tool.ts': `import './lib/x.ts'\n${toolSource('t')}`, 'lib/x.ts': 'export const x = 1' })
    expect(await folder.problems('tool.ts')).toEqual([])
    await chmod(join(folder.path, 'lib/x.ts'), 0o666)
    // It is another file now: it is looked at again.
    expect(await folder.problems('tool.ts')).toEqual([
      'The plugin imports /lib/x.ts, which cannot be loaded: Other users can write to /lib/x.ts; run "chmod go-w /lib/x.ts".',
    ])
  })

  test.skipIf(process.getuid?.() !== 0)('J4: a file of another user is refused', async () => {
    await using folder = await pluginFolder()
    await folder.write({ 'tool.ts': toolSource('t') })
    await chown(join(folder.path, 'tool.ts'), 12345, 12345)
    expect(await folder.problems('tool.ts')).toEqual([expect.stringContaining('belongs to another user')])
  })
})

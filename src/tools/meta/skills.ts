import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import type { Served, View } from '../../core/access.ts'
import type { Call } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { type Result, resultOf } from '../../core/result.ts'
import { contentBytes, skillFiles, skillFrontmatter, skillRoot } from '../../core/skills.ts'
import { Json } from '../../json/json.ts'
import { readFrontMatter } from '../../lib/front-matter.ts'
import { quote } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { outerTimeoutMs, waitFor } from './nested-call.ts'
import { agentId, listResult, type MetaToolsOptions } from './shared.ts'

const findSkillInput = z.object({
  agent_id: agentId,
  query: z.string().max(1000).optional().describe('What the skill should help with; without it, all skills.'),
  limit: z.int().min(1).max(100).default(10).describe('Maximum number of matches.'),
})

/** For models whose clients do not know the skills extension. Listed only if the agent has a skill. */
export const findSkill = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'find_skill',
    title: 'Find a skill',
    description:
      'Searches the skills: instructions that servers offer for tasks with their tools. Before a task with several ' +
      'steps, look for a skill, and read a match with get_skill.',
    input: findSkillInput,
    readOnly: true,
    timeoutMs: outerTimeoutMs,
    async run({ agent_id, query = '', limit }, { call }) {
      const view = access.view(asAgent(call, agent_id))
      await view.ready()
      const found = searchSkills(view.list('skill'), query)
      const skills = found.slice(0, limit).map(describeSkill)
      return listResult({ skills, total: found.length }, { requested: limit, returned: skills.length })
    },
  })

const describeSkill = ({ name: skill, entry: { server, definition } }: Served) => {
  const { name, description } = skillFrontmatter(definition)
  return { skill, server, name, description }
}

/** The skills that have some of the words, best first. */
function searchSkills(skills: readonly Served[], query: string): readonly Served[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []
  if (words.length === 0) return skills
  const scores = new Map(
    skills.map((skill) => {
      const { name, description } = skillFrontmatter(skill.entry.definition)
      const [own, text] = [name.toLowerCase(), description.toLowerCase()]
      const score = words.reduce((sum, word) => sum + 2 * Number(own.includes(word)) + Number(text.includes(word)), 0)
      return [skill, score]
    }),
  )
  const scoreOf = (skill: Served) => scores.get(skill) ?? 0
  return skills.filter((skill) => scoreOf(skill) > 0).toSorted((a, b) => scoreOf(b) - scoreOf(a))
}

const getSkillInput = z.object({
  agent_id: agentId,
  skill: z.string().describe('The "skill" of a match from find_skill, or its name if no other skill has it.'),
  file: z.string().optional().describe('A file of the skill, as a path relative to it. Default: its instructions.'),
})

export const getSkill = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'get_skill',
    title: 'Get a skill',
    description:
      'Returns the instructions of a skill (SKILL.md) and the names of its files, or one of its files. The text comes ' +
      'from the server that is named with it.',
    input: getSkillInput,
    readOnly: true,
    timeoutMs: outerTimeoutMs,
    carries: true,
    async run({ agent_id, skill, file }, { call }) {
      const caller = asAgent(call, agent_id)
      const view = access.view(caller)
      await view.ready()
      const served = requireSkill(view, skill)
      const uri = fileUri(served, file)
      const found = await view.resolve('resource', uri, { ...waitFor(call), parent: call.id })
      const result = await access.handle({
        ...callInside(call),
        caller,
        entry: found.entry,
        input: readInput(call, found.uri),
      })
      if (file === undefined) await checkFrontMatter(served, result)
      return fileResult(served, file, result)
    },
  })

const callInside = (call: Call) => ({
  id: randomUUID(),
  parent: call.id,
  ...{ signal: call.signal, peer: call.peer, trace: call.trace, trail: call.trail },
})

const readInput = ({ input: { meta } }: Call, uri: string | undefined): Call['input'] => ({
  ...{ arguments: Json.of({}), uri, meta },
})

function requireSkill(view: View, wanted: string): Served {
  const skills = view.list('skill')
  const named = skills.filter(({ entry }) => skillFrontmatter(entry.definition).name === wanted)
  const found = skills.find(({ name }) => name === wanted) ?? (named.length === 1 ? named[0] : undefined)
  if (found) return found
  const all = skills.map(({ name }) => name)
  const which =
    named.length > 1 ? `: pass one of ${named.map(({ name }) => name).join(', ')}.` : didYouMean(wanted, all)
  const what = named.length > 1 ? 'Several skills have the name' : 'There is no skill'
  throw new ToolwayError('INVALID_ARGUMENTS', `${what} ${quote(wanted)}${which}`)
}

/** The URI of a skill's file. Throws if the skill does not list it. */
function fileUri(skill: Served, file: string | undefined): string {
  const uri = file === undefined ? skill.name : `${skillRoot(skill.name)}/${file}`
  const files = skillFiles(skill.definition)
  if (file?.split('/').includes('..') || (files && !files.some((one) => one.uri === uri))) {
    const names = fileNames(skill) ?? []
    throw new ToolwayError(
      'INVALID_ARGUMENTS',
      `The skill has no file ${quote(file ?? '')}${didYouMean(file ?? '', names)}`,
    )
  }
  return uri
}

const fileNames = ({ name, definition }: Served): readonly string[] | undefined =>
  skillFiles(definition)?.map(({ uri }) => uri.slice(skillRoot(name).length + 1))

/** Throws unless the front matter of a `SKILL.md` is the one that its server lists, by which the skill was chosen. */
async function checkFrontMatter({ entry }: Served, { body }: Result): Promise<void> {
  const text = contentBytes(body.value)?.toString('utf8') ?? ''
  if (isDeepStrictEqual(await readFrontMatter(text), entry.definition.frontmatter)) return
  const sentence = `${entry.server} lists another front matter for the skill ${quote(entry.name)} than its SKILL.md has.`
  throw new ToolwayError('SERVER_UNAVAILABLE', sentence, { server: entry.server })
}

/** A file of a skill for a model, after a line that says where it comes from. */
function fileResult(skill: Served, file: string | undefined, { body }: Result): Result {
  const { server, definition } = skill.entry
  const { name } = skillFrontmatter(definition)
  const bytes = contentBytes(body.value)
  const text = bytes?.toString('utf8')
  const others = fileNames(skill)?.filter((one) => one !== 'SKILL.md') ?? []
  const files = others.length > 0 ? ` Its files, for get_skill(skill, file): ${others.join(', ')}.` : ''
  const about = `${file ?? 'SKILL.md'} of the skill ${name} from the server ${server}.${file === undefined ? files : ''}`
  const contents = body.value.contents as readonly object[]
  const isText = text !== undefined && bytes !== undefined && Buffer.from(text).equals(bytes)
  const content = isText ? [{ type: 'text', text }] : contents.map((resource) => ({ type: 'resource', resource }))
  return resultOf({ content: [{ type: 'text', text: about }, ...content] })
}

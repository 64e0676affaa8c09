import { randomUUID } from 'node:crypto'
import { pinLabel } from '../../catalog/pins/pin-state.ts'
import { visible } from '../../catalog/scan/finding.ts'
import { scanDefinition } from '../../catalog/scan/scan.ts'
import type { Access, Served } from '../../core/access.ts'
import { type Caller, type Handler, quietPeer } from '../../core/call.ts'
import type { Entry } from '../../core/entry.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import { contentBytes, skillFiles, skillFrontmatter, skillRoot } from '../../core/skills.ts'
import { Json } from '../../json/json.ts'
import type { Generation } from '../../runtime/generation.ts'
import type { AdminContext } from '../context.ts'
import type { SkillDetail, SkillPage, SkillView } from '../contract.ts'
import { adminRoute, type Route } from '../router.ts'
import * as schema from './schema.ts'

export type SkillsService = ReturnType<typeof createSkillsAdmin>

export function createSkillsAdmin({ access, current }: AdminContext) {
  return {
    skills(): SkillPage {
      const generation = current()
      return { skills: generation.catalog.everything('skill').map((skill) => viewSkill(skill, generation)) }
    },
    async skill(caller: Caller, name: string, signal: AbortSignal): Promise<SkillDetail> {
      const generation = current()
      const skill = generation.catalog.everything('skill').find((one) => one.name === name)
      if (!skill) throw invalidArguments(`There is no skill ${visible(name).slice(0, 200)}.`)
      const read = await readSkillText(access, skill, caller, signal)
      const { definition, verbatim } = skill.entry
      const found = scanDefinition({ ...definition, ...verbatim, ...(read.text !== undefined && { text: read.text }) })
      const root = skillRoot(skill.entry.name)
      const files = skillFiles(definition)?.map(({ uri, digest, size }) => {
        return { path: visible(uri.slice(root.length + 1)), digest, size }
      })
      return {
        ...viewSkill(skill, generation),
        files: files ?? null,
        text: read.text === undefined ? null : visible(read.text, 'lines'),
        failure: read.failure ?? null,
        findings: found.map((finding) => ({ ...finding, where: visible(finding.where) })),
      }
    },
  }
}

function viewSkill({ name, entry }: Served, { pins }: Generation): SkillView {
  const { state } = pins.check(entry)
  const { name: title, description } = skillFrontmatter(entry.definition)
  return {
    name,
    server: entry.server,
    title,
    description: visible(description),
    label: pinLabel(entry.server, 'skill', entry.name),
    hash: state?.hash ?? null,
    pin: state?.state ?? 'off',
    quarantined: state?.quarantined ?? false,
    flags: [...pins.flagsOf(entry)],
  }
}

/**
 * Reads the text of a skill for an operator's review, also while the skill is held back: as a resource, which is not
 * pinned. All other decisions apply, and the read is audited.
 */
async function readSkillText(
  access: Access,
  { entry }: Served,
  caller: Caller,
  signal: AbortSignal,
): Promise<{ readonly text?: string; readonly failure?: string }> {
  const { server, name, traits } = entry
  const run: Handler = (call) => entry.run({ ...call, entry })
  const resource: Entry = { kind: 'resource', server, name, definition: { uri: name }, traits, run }
  const input = { arguments: Json.of({}), uri: name, meta: {} }
  const peer = quietPeer(() =>
    Promise.reject(new ToolwayError('INVALID_ARGUMENTS', 'A review cannot answer questions.')),
  )
  try {
    const { body } = await access.handle({ id: randomUUID(), caller, entry: resource, input, signal, peer })
    return { text: contentBytes(body.value)?.toString('utf8') ?? '' }
  } catch (thrown) {
    return { failure: ToolwayError.from(thrown).message }
  }
}

export const skillsRoutes = (admin: SkillsService): readonly Route[] => [
  adminRoute('GET', 'skills', 'Skills of servers and folders, with their state', {
    answer: schema.skillPage,
    run: () => admin.skills(),
  }),
  adminRoute('GET', 'skills/{name}', 'One skill: its text, its files and what the scanner found', {
    answer: schema.skillDetail,
    run: ({ caller, target, signal }) => admin.skill(caller, target, signal),
  }),
]

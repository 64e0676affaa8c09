import * as z from 'zod'
import type { Permission, ToolDetail, ToolPage, ToolView, TryResult } from '../contract.ts'
import { figures } from './figures.ts'
import { fits } from './fits.ts'

const fields = {
  name: z.string().describe('As it is served.'),
  server: z.string(),
  tool: z.string().describe('As its server names it.'),
  title: z.string().nullable(),
  description: z.string(),
  access: z.enum(['read', 'write', 'destructive']),
  tokens: z.int().min(0).describe("What its definition costs a model's context."),
  pin: z.enum(['new', 'pinned', 'changed', 'quarantined', 'off']),
  flags: z.array(z.string()).describe('What is suspicious about its definition.'),
}

const anything = z.record(z.string(), z.unknown())

const toolView = fits<ToolView>('ToolView', 'A tool.')(z.strictObject(fields))

export const toolPage = fits<ToolPage>(
  'ToolPage',
  'Some of the tools.',
)(
  z.strictObject({
    tools: z.array(toolView),
    total: z.int().min(0).describe('How many fit, on all pages together.'),
    nextCursor: z.string().nullable(),
  }),
)

const permission = fits<Permission>(
  'Permission',
  'Whether an agent may use a tool, and the rule that decides.',
)(z.strictObject({ agent: z.string(), allowed: z.boolean(), rule: z.string() }))

export const toolDetail = fits<ToolDetail>(
  'ToolDetail',
  'A tool, its definition, and who may use it.',
)(
  z.strictObject({
    ...fields,
    definition: anything,
    agents: z.array(permission).describe('Every agent for admins, else those that the caller may be.'),
    calls: figures,
  }),
)

export const tryResult = fits<TryResult>(
  'TryResult',
  'What a tool answered, or how the call was refused.',
)(
  z.strictObject({
    call: z.string().describe('The id of the call, under which GET calls/ID finds it.'),
    ms: z.number().min(0),
    result: anything.nullable(),
    error: z.strictObject({ code: z.string(), message: z.string(), rule: z.string().optional() }).nullable(),
  }),
)

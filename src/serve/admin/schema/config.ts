import * as z from 'zod'
import type { AdminError, ConfigView, ReloadEvent } from '../contract.ts'
import { reloadView } from './figures.ts'
import { fits } from './fits.ts'

export const reloadEvent = fits<ReloadEvent>(
  'ReloadEvent',
  'One attempt to take over a changed configuration.',
)(
  z.strictObject({
    at: z.number(),
    ok: z.boolean(),
    error: z.string().nullable(),
    changes: z.array(z.string()).describe('What it changed, in words.'),
  }),
)

export const configView = fits<ConfigView>(
  'ConfigView',
  'The configuration in force, secrets replaced.',
)(
  z.strictObject({
    files: z.array(z.strictObject({ path: z.string(), dialect: z.string() })),
    config: z.record(z.string(), z.unknown()),
    warnings: z.array(z.string()),
    reload: reloadView,
    history: z.array(reloadEvent).describe('Newest first.'),
  }),
)

export const adminError = fits<AdminError>(
  'AdminError',
  'Why a request was refused, in a sentence.',
)(z.strictObject({ error: z.strictObject({ code: z.string(), message: z.string() }) }))

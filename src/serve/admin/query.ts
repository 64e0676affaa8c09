import * as z from 'zod'

const longest = 500

export const text = (description: string) => z.string().max(longest).optional().describe(description)

export const moment = (description: string) =>
  z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional().describe(description)

export const limit = (usual: number, most: number) =>
  z.coerce.number().int().min(1).max(most).default(usual).describe('How many to answer with at most.')

export const cursor = text('Goes on after the page that gave it.')

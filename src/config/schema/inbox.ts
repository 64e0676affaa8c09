import * as z from 'zod'
import { address } from './values.ts'

export const inboxSection = z.strictObject({
  webhook: address('http', 'https')
    .meta({ secret: 'address' })
    .optional()
    .describe('URL to which new items of the inbox are posted as JSON.'),
})

import * as z from 'zod'
import type { ChatView } from '../contract.ts'
import { fits } from './fits.ts'

export const chatView = fits<ChatView>(
  'ChatView',
  'What one can talk to.',
)(
  z.strictObject({
    models: z
      .array(z.string())
      .describe('The models by their names, the usual one first; none where none is configured.'),
  }),
)

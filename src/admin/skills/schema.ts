import * as z from 'zod'
import { type ViewOf, view } from '../overview/schema.ts'
import { pinWord, scanFinding } from '../pins/schema.ts'

const skillFields = {
  name: z.string().describe('The served URI of its SKILL.md.'),
  server: z.string(),
  title: z.string().describe('The name in its front matter.'),
  description: z.string(),
  label: z.string().describe('The label of its pin, for GET pins/LABEL.'),
  hash: z.string().nullable().describe('The hash of its definition, for a decision about the pin; null without pins.'),
  pin: z.enum([...pinWord.options, 'off']),
  quarantined: z.boolean().describe('Whether no model can see it because of its state.'),
  flags: z.array(z.string()).describe('Kinds of suspicious content in the definition.'),
}

const skillView = view('SkillView', 'A skill of a server or of a folder.', skillFields)
export type SkillView = ViewOf<typeof skillView>

export const skillPage = view('SkillPage', 'All skills.', { skills: z.array(skillView) })
export type SkillPage = ViewOf<typeof skillPage>

export const skillDetail = view('SkillDetail', 'A skill with its text, as read from its server now.', {
  ...skillFields,
  files: z
    .array(z.strictObject({ path: z.string(), digest: z.string(), size: z.int().min(0) }))
    .nullable()
    .describe('Null if its files are generated.'),
  text: z
    .string()
    .nullable()
    .describe('The text of its SKILL.md, with invisible characters spelt out; null if it failed.'),
  failure: z.string().nullable().describe('Why the text could not be read.'),
  findings: z.array(scanFinding).describe('What the scanner finds in the definition and in the text.'),
})
export type SkillDetail = ViewOf<typeof skillDetail>

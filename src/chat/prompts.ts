import type { Config } from '../config/schema.ts'

/** What can be filled into a prompt. */
export interface PromptValues {
  /** The user's text. */
  readonly message: string
  /** The candidate tools, one to a line. */
  readonly tools: string
  readonly agent: string
  /** Today, as 2026-11-30. */
  readonly date: string
}

type PromptName = keyof Config['chat']['prompts']

export type Prompts = Readonly<Record<PromptName, (values: PromptValues) => string>>

/** Makes functions of the templates, once for all conversations. */
export const compilePrompts = (templates: Config['chat']['prompts']): Prompts =>
  Object.fromEntries(Object.entries(templates).map(([name, template]) => [name, compile(template)])) as Prompts

const placeholder = /\{(message|tools|agent|date)\}/

/** All placeholders are found before anything is filled in: what a user writes can never become one. */
function compile(template: string): (values: PromptValues) => string {
  const parts = template.split(placeholder)
  return (values) => parts.map((part, index) => (index % 2 === 1 ? values[part as keyof PromptValues] : part)).join('')
}

import { type Capabilities, profileOf } from '../core/capabilities.ts'

/** What we do ourselves, in every era, whatever the servers behind us can. */
export const capabilities = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
}

/** In characters. Clients need a few hundred; they are kept for each session, and for each kind of client. */
const maxDeclared = 4_096

/** What is wrong with the capabilities that a client declares, if they are more than anybody will keep for it. */
export const tooMuchDeclared = (declared: Capabilities): string | undefined =>
  profileOf(declared).length > maxDeclared ? `must not have more than ${maxDeclared} characters` : undefined

import type { ErrorCode } from '../../src/core/errors.ts'
import type { PageText } from './page-text.ts'
import { agents } from './texts/agents.ts'
import { args } from './texts/arguments.ts'
import { finding } from './texts/finding.ts'
import { policy } from './texts/policy.ts'
import { running } from './texts/running.ts'
import { servers } from './texts/servers.ts'

/** What the page of each code says. */
export const texts: Record<ErrorCode, PageText> = {
  ...finding,
  ...servers,
  ...policy,
  ...agents,
  ...args,
  ...running,
}

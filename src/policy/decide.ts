import type { PolicyConfig } from '../config/schema.ts'
import type { Decide } from '../core/decision.ts'
import { compileRules } from './rules.ts'

/** Global policy (F7) alone, for one user who may use everything else. */
export const createPolicy = (config: PolicyConfig): Decide =>
  compileRules({ agents: {}, policy: config, servers: [] }).decide

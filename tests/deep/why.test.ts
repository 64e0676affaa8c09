import { test } from 'vitest'
import { whyAgrees } from '../e2e/policy/why-agrees.ts'

test('B11: `why` and what really happens agree for every pair of 50 agents and 500 tools', () => whyAgrees(50))

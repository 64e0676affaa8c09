import { test } from 'vitest'
import { whyAgrees } from './why-agrees.ts'

test('B11: `why` and what really happens agree for every pair of 10 agents and 500 tools', () => whyAgrees(10))

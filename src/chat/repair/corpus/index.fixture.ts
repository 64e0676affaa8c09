import type { Case } from './case.fixture.ts'
import { quoting } from './quoting.fixture.ts'
import { structure } from './structure.fixture.ts'
import { unseen } from './unseen.fixture.ts'
import { values } from './values.fixture.ts'
import { wrapping } from './wrapping.fixture.ts'

/** What models have been seen to write, or might, where JSON was asked for. */
export const corpus: readonly Case[] = [...wrapping, ...quoting, ...structure, ...values, ...unseen]

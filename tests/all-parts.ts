import { shellParts } from './browser/build.setup.ts'
import { unpackChromium } from './browser/packaged-chromium.ts'
import { storyParts } from './e2e.setup.ts'
import { provideAll } from './fixtures/debian.ts'
import { parts } from './parts.setup.ts'

// Installs what the tests of all projects need. Each of them would install its own, one after the other.
provideAll({ ...parts(), ...storyParts, ...shellParts() })
unpackChromium()

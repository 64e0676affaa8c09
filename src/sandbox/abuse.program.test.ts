import { javascriptAttacks, pythonAttacks, siege, some } from './siege.fixture.ts'

// Some of each kind; `npm run test:deep` runs all of them in every tier.
siege('bwrap', 'javascript', some(4, javascriptAttacks))
siege('process', 'javascript', some(1, javascriptAttacks))
siege('worker', 'javascript', some(1, javascriptAttacks))
siege('bwrap', 'python', some(4, pythonAttacks))

import { javascriptAttacks, pythonAttacks, siege, some } from './siege.fixture.ts'

// Some of each kind; `npm run test:deep` runs all of them in every tier.
siege('bwrap', 'javascript', some(7, javascriptAttacks))
siege('process', 'javascript', some(2, javascriptAttacks))
siege('worker', 'javascript', some(2, javascriptAttacks))
siege('bwrap', 'python', some(6, pythonAttacks))

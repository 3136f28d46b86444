/** How a node of the trie lies in its array: what each of its cells holds. */

// The cells of a node; 0 means that there is none.

/** The GET route that ends here, plus 1. */
export const GET = 0;
/** Index of the other routes that end here, each plus 1. */
export const OTHERS = 1;
/** Cells of what may follow that is not static. */
export const DYNAMIC = 2;
/** Table of the nodes behind static text, each at the masked code of its first character. */
export const CHILDREN = 3;
/** As many bits as it takes for each child to have a place of its own in that table. */
export const MASK = 4;
/** How long the static text is that leads here from the node above. */
export const LENGTH = 5;
/** The codes of its characters. */
export const TEXT = 6;

// The cells of what is not static.

/** Index of the constrained parameters. */
export const CHOICES = 0;
/** The node behind a plain parameter. */
export const PARAM = 1;
/** The node behind a wildcard. */
export const WILDCARD = 2;
export const DYNAMIC_SIZE = 3;

/** Where every path is after its first slash. Before it are cells of a node that is none, whose table of children is empty. */
export const ROOT: number = TEXT;

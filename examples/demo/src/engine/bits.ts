/** bits */
export {};
